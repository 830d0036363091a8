"""`scae evaluate MODEL`: LIN-MATCH, LIN-PRED or segmentation error of a trained model."""

from dataclasses import dataclass

from scae.cli.options import DataDir, Model, parse
from scae.cli.output import results_only, show


@dataclass(frozen=True)
class Evaluate:
    """Score a model on labelled data."""

    model: Model
    """Run folder, weights file or name of a shipped model."""
    data_dir: DataDir = None
    """Folder of data sets; default: SCAE_DATA, else downloads."""
    dataset: str | None = None
    """Data to score on, e.g. affnist-style; default: the data the model was made for."""
    baselines: bool = True
    """Also score k-means on raw pixels."""
    limit: int | None = None
    """Score only this many images of each split, or scenes."""
    seed: int = 0
    """Seed of k-means, or of the scenes that are scored."""
    json: bool = False
    """Print JSON."""


def command(arguments: list[str]) -> None:
    """Load, score, print."""
    options = parse(Evaluate, arguments, "evaluate")
    with results_only(options.json):
        from scae.api import load_model
        from scae.cli.results import describe
        from scae.evaluation import evaluate

        loaded = load_model(options.model)
        result = evaluate(
            loaded.model,
            loaded.experiment,
            options.dataset,
            options.data_dir,
            baselines=options.baselines,
            seed=options.seed,
            limit=options.limit,
        )
    scores = result.to_dict()
    show(scores, describe(loaded.experiment, scores), options.json)
