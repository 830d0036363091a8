"""Pictures and report of a trained model, from what its run folder holds."""

import json
from pathlib import Path
from typing import Any

from scae.api import Loaded
from scae.figures import make_all
from scae.report import write_report
from scae.scoring import Result
from scae.training import RunFolder, read_table

EVALUATION = "evaluation.json"


def draw(
    loaded: Loaded,
    folder: Path,
    data_dir: Path | None,
    only: tuple[str, ...] = (),
    result: Result | None = None,
) -> list[Path]:
    """Draw the figures that apply to a model; loss curves where its metrics are at hand."""
    return make_all(
        loaded.model,
        loaded.experiment,
        folder,
        data_dir=data_dir,
        metrics=_metrics(loaded.origin),
        result=result,
        names=only or None,
    )


def report(loaded: Loaded, figures: list[Path]) -> Path:
    """Write report.html into the model's run folder, with the scores stored there."""
    scores = _stored_scores(loaded.origin)
    return write_report(loaded.origin, loaded.experiment, scores, figures, _metrics(loaded.origin))


def _metrics(folder: Path) -> dict[str, list[float]] | None:
    path = RunFolder(folder).metrics
    return read_table(path) if path.is_file() else None


def _stored_scores(folder: Path) -> dict[str, Any] | None:
    try:
        value = json.loads((folder / EVALUATION).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
