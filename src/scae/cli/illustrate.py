"""Pictures of a trained model, from what its run folder holds."""

from pathlib import Path

from scae.api import Loaded
from scae.figures import make_all
from scae.scoring import Result
from scae.training import RunFolder, read_table


def draw(
    loaded: Loaded,
    folder: Path,
    data_dir: Path | None,
    only: tuple[str, ...] = (),
    result: Result | None = None,
) -> list[Path]:
    """Draw the figures that apply to a model; loss curves where its metrics are at hand."""
    metrics = RunFolder(loaded.origin).metrics
    return make_all(
        loaded.model,
        loaded.experiment,
        folder,
        data_dir=data_dir,
        metrics=read_table(metrics) if metrics.is_file() else None,
        result=result,
        names=only or None,
    )
