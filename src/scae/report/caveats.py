"""What a reader must know before believing a run's numbers."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scae.config import Experiment
from scae.errors import ScaeError
from scae.figures.curves import Columns
from scae.presets import preset
from scae.training.diagnostics import Diagnosis, symptoms
from scae.training.tables import read_table

SHORT = 0.9
"""A run of fewer than this share of its preset's steps is called short."""


def run_warnings(
    folder: Path,
    experiment: Experiment,
    scores: Mapping[str, Any],
    metrics: Columns | None,
    environment: Mapping[str, Any],
) -> list[str]:
    """Sentences about short runs, bad steps, collapse and unclear origin."""
    found = [*_length(experiment, metrics), *_bad_steps(metrics)]
    found += [f"At the end of training, {text}." for text in last_symptoms(folder).values()]
    if not scores:
        found.append("The model has not been evaluated.")
    if str(environment.get("commit") or "").endswith("+"):
        found.append("The code had uncommitted changes when the run was started.")
    return found


def _length(experiment: Experiment, metrics: Columns | None) -> list[str]:
    planned = experiment.training.steps
    found = []
    steps = [] if metrics is None else [s for s in metrics.get("step", ()) if math.isfinite(s)]
    if steps and steps[-1] < planned:
        found.append(f"Training stopped at step {steps[-1]:,.0f} of {planned:,}.")
    try:
        usual = preset(experiment.name).training.steps
    except ScaeError:
        return found
    if planned < SHORT * usual:
        found.append(
            f"A short run: {planned:,} steps, where the preset {experiment.name} takes {usual:,}."
        )
    return found


def _bad_steps(metrics: Columns | None) -> list[str]:
    found = []
    for column, text in (
        ("skipped_steps", "steps were skipped because loss or gradient were not finite"),
        ("rollbacks", "times training was rolled back to a checkpoint with a lower learning rate"),
    ):
        values = [] if metrics is None else list(metrics.get(column, ()))
        if values and values[-1] > 0:
            found.append(f"{values[-1]:.0f} {text}.")
    return found


def last_symptoms(folder: Path) -> dict[str, str]:
    """Symptoms of collapse in the last row of `diagnostics.csv`; none where there is no file."""
    path = folder / "diagnostics.csv"
    if not path.is_file():
        return {}
    try:
        table = read_table(path)
    except ScaeError:
        return {}
    if not table or not table.get("step"):
        return {}
    row = {name: values[-1] for name, values in table.items()}
    try:
        diagnosis = Diagnosis(
            active_objects=row["active_objects"],
            dead_objects=int(row["dead_objects"]),
            object_entropy_within=row["object_entropy_within"],
            object_entropy_between=row["object_entropy_between"],
            unexplained=row["unexplained"],
            object_usage=_numbered(row, "object_usage_"),
            active_parts=row.get("active_parts", math.nan),
            dead_parts=int(row.get("dead_parts", 0)),
            part_entropy=row.get("part_entropy", math.nan),
            template_similarity=row.get("template_similarity", math.nan),
            part_usage=_numbered(row, "part_usage_"),
        )
    except (KeyError, ValueError):
        return {}  # a table of another version says nothing rather than something wrong
    return symptoms(diagnosis)


def _numbered(row: Mapping[str, float], prefix: str) -> list[float]:
    """Values of the columns `prefix` 0, 1, ... in the order of their numbers."""
    names = [name for name in row if name.startswith(prefix)]
    return [row[name] for name in sorted(names, key=lambda name: int(name.removeprefix(prefix)))]
