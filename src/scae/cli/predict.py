"""`scae predict MODEL --data DIR --out clusters.csv`: clusters of the user's own data."""

from dataclasses import dataclass
from pathlib import Path

from scae.cli.options import Model, parse
from scae.cli.output import results_only, show


@dataclass(frozen=True)
class Predict:
    """Cluster images (or segment point sets) with a trained model and write a CSV file.

    Images go to the nearest of the clusters that the model keeps, so numbers are stable. The
    columns are file, cluster, strongest_object and presence; for point sets scene, point, x, y
    and object.
    """

    model: Model
    """Run folder, weights file or name of a shipped model."""
    data: str
    """Image or folder of images, .npz or .npy file, CSV of points, or the name of a data set."""
    out: Path
    """CSV file to write."""
    clusters: int | None = None
    """Number of clusters, if not the model's own: they are then fitted on these images."""
    seed: int = 0
    """Seed of k-means."""
    json: bool = False
    """Print JSON."""


def command(arguments: list[str]) -> None:
    """Load, cluster, write."""
    options = parse(Predict, arguments, "predict")
    with results_only(options.json):
        from scae.api import load_model
        from scae.prediction import predict

        loaded = load_model(options.model)
        found = predict(loaded, options.data, clusters=options.clusters, seed=options.seed)
        found.write(options.out)
    sizes = ", ".join(f"{group}: {size}" for group, size in found.sizes.items())
    summary = {
        "out": options.out,
        "rows": len(found.rows),
        "sizes": found.sizes,
        "note": found.note,
    }
    text = f"{len(found.rows)} rows in {options.out} ({sizes})"
    show(summary, f"{text}\n{found.note}" if found.note else text, options.json)
