"""`scae predict SOURCE --data DIR --out clusters.csv`: clusters of the user's own data."""

from dataclasses import dataclass
from pathlib import Path

from scae.cli.options import Source, check_seed, parse
from scae.cli.output import results_only, show


@dataclass(frozen=True)
class Predict:
    """Cluster images (or segment point sets) with a trained model and write a CSV file.

    Images are clustered by k-means on their object presences. The columns are file, cluster,
    strongest_object and presence; for point sets scene, point, x, y and object.
    """

    source: Source
    """Run folder, weights file or name of a shipped model."""
    data: str
    """Folder of images, .npz or .npy file, CSV of points, or the name of a data set."""
    out: Path
    """CSV file to write."""
    clusters: int | None = None
    """Number of clusters; default: the number of classes the model was made for."""
    seed: int = 0
    """Seed of k-means."""
    json: bool = False
    """Print JSON."""


def command(arguments: list[str]) -> None:
    """Load, cluster, write."""
    options = parse(Predict, arguments, "predict")
    check_seed(options.seed)
    with results_only(options.json):
        from scae.api import load_source
        from scae.prediction import predict

        loaded = load_source(options.source)
        found = predict(loaded, options.data, clusters=options.clusters, seed=options.seed)
        found.write(options.out)
    sizes = ", ".join(f"{group}: {size}" for group, size in found.sizes.items())
    summary = {"out": options.out, "rows": len(found.rows), "sizes": found.sizes}
    show(summary, f"{len(found.rows)} rows in {options.out} ({sizes})", options.json)
