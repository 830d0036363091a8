"""`scae evaluate SOURCE`: scores of a model on labelled data."""

from dataclasses import dataclass

from scae.cli.options import DataDir, Source, check_seed, parse
from scae.cli.output import results_only, show


@dataclass(frozen=True)
class Evaluate:
    """Score a model: LIN-MATCH and LIN-PRED of images, segmentation error of point sets."""

    source: Source
    """Run folder, weights file or name of a shipped model."""
    data_dir: DataDir = None
    """Folder of data sets; default: SCAE_DATA, else downloads."""
    dataset: str | None = None
    """Data to score on, e.g. affnist-style; default: the data the model was made for."""
    baselines: bool = True
    """Also score k-means on raw pixels and on their principal components."""
    seed: int = 0
    """Seed of k-means, or of the scenes that are scored."""
    json: bool = False
    """Print JSON."""


def command(arguments: list[str]) -> None:
    """Load, score, print."""
    options = parse(Evaluate, arguments, "evaluate")
    check_seed(options.seed)
    with results_only(options.json):
        from scae.api import load_source
        from scae.cli.results import describe
        from scae.scoring import score

        loaded = load_source(options.source)
        result = score(
            loaded.model,
            loaded.experiment,
            options.dataset,
            options.data_dir,
            baselines=options.baselines,
            seed=options.seed,
        )
    show(result.to_dict(), describe(result), options.json)
