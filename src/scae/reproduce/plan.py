"""Which cells a target consists of, each with all that decides its numbers."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from scae import config_json, files
from scae.config import Experiment, ImageExperiment
from scae.errors import ScaeError
from scae.presets.ablations import ABLATIONS
from scae.reproduce.budgets import Length, Target, experiment
from scae.reproduce.code_version import code_version
from scae.reproduce.data_at_hand import BUILT_IN, DIGITS_STYLE, DataFinder, on_digits

TABLE1_DATASETS = ("mnist", "cifar10", "svhn")
TABLE2_DATASETS = ("mnist", "mnist40")
TABLE2_ROWS = ("full", *ABLATIONS)
CONSTELLATION_ROWS = ("full", "no-two-parts", "baseline")
FIRST_GROUPS = ("", "a", "d", "e")
"""Groups of table 2 to train first: they carry the paper's main conclusions."""
KEY_LENGTH = 10
SPEC = "cell.json"
RESULT = "result.json"
FAILURE = "failed.json"


@dataclass(frozen=True)
class Evaluation:
    """What is scored after training."""

    examples: int | None
    """Examples of each split; None for all."""
    baselines: bool
    """Also k-means on pixels."""
    transfer: str | None
    """Data of another distribution to score on as well."""


@dataclass(frozen=True)
class Cell:
    """One run: a row of a table on one data set with one seed."""

    row: str
    dataset: str
    """The column's data set, as the paper has it."""
    seed: int
    experiment: Experiment
    evaluation: Evaluation
    data: str
    """Fingerprint of the data."""
    problem: str | None = None
    """Why the cell cannot be run at all."""

    @property
    def name(self) -> str:
        """For people and folders."""
        return f"{self.dataset}-{self.row}-seed{self.seed}"

    @property
    def stand_in(self) -> str | None:
        """The data that stand in for the column's, if any do."""
        data = self.experiment.data.name
        return data if data == "digits" else None

    @cached_property
    def content(self) -> dict[str, Any]:
        """All that decides the numbers, but for the code."""
        return {
            "experiment": config_json.to_json(self.experiment),
            "evaluation": asdict(self.evaluation),
            "data": self.data,
        }

    @cached_property
    def key(self) -> str:
        """Hash of the content: cells of equal keys are the same run."""
        text = json.dumps(self.content, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]

    def folder(self, out: Path, code: str | None = None) -> Path:
        """The run folder, one for every version of configuration, data and code."""
        return out / "cells" / f"{self.name}-{self.key}-{(code or code_version())[:KEY_LENGTH]}"

    def write(self, folder: Path, data_dir: Path | None, device: str) -> None:
        """Leave the cell in its folder, for a process here or elsewhere to run."""
        folder.mkdir(parents=True, exist_ok=True)
        where = None if data_dir is None else str(Path(data_dir).absolute())
        about = {"name": self.name, "key": self.key, "device": device, "data_dir": where}
        files.write_json(folder / SPEC, {**about, **self.content})


def cells_of(
    target: Target,
    length: Length,
    seeds: int | None,
    finder: DataFinder,
    only: Sequence[str] = (),
) -> list[Cell]:
    """All cells of a target in the order they should be trained: seed by seed."""
    count = length.seeds(target) if seeds is None else seeds
    if count < 1:
        raise ScaeError(f"--seeds is {count}; give at least 1.")
    pairs = _pairs(target, only)
    return [
        _cell(target, dataset, row, length, seed, finder)
        for seed in range(count)
        for row, dataset in pairs
    ]


def group(row: str) -> str:
    """Group of a row of table 2; the full model has none."""
    return ABLATIONS[row].group if row in ABLATIONS else ""


def _pairs(target: Target, only: Sequence[str]) -> list[tuple[str, str]]:
    if target == "table1":
        return [("full", dataset) for dataset in TABLE1_DATASETS]
    if target == "constellations":
        return [(row, "constellations") for row in CONSTELLATION_ROWS]
    known = {*TABLE2_ROWS, *(group(row) for row in ABLATIONS)}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise ScaeError(
            f"--only: {unknown[0]!r} is neither a group (a to f) nor a row of table 2 "
            f"({', '.join(TABLE2_ROWS)})."
        )
    rows = [row for row in TABLE2_ROWS if not only or row in only or group(row) in only]
    rows.sort(key=lambda row: group(row) not in FIRST_GROUPS)  # stable: else the table's order
    return [(row, dataset) for row in rows for dataset in TABLE2_DATASETS]


def _cell(
    target: Target, dataset: str, row: str, length: Length, seed: int, finder: DataFinder
) -> Cell:
    config = experiment(target, dataset, row, length, seed)
    if not isinstance(config, ImageExperiment):
        evaluation = Evaluation(length.examples, False, None)
        return Cell(row, dataset, seed, config, evaluation, BUILT_IN)
    data = finder.look_up(config.data.name)
    transfer = finder.transfer() if dataset == "mnist40" else None
    # Pixels do not depend on the row: the full model's cells score them for all.
    evaluation = Evaluation(length.examples, row == "full" and transfer is None, transfer)
    if data.found:
        fingerprint = data.fingerprint
        if transfer == "affnist":
            fingerprint += finder.look_up("affnist").fingerprint
        return Cell(row, dataset, seed, config, evaluation, fingerprint)
    if length.budget != "smoke":
        return Cell(row, dataset, seed, config, evaluation, "", data.problem)
    if transfer is not None:
        evaluation = replace(evaluation, transfer=DIGITS_STYLE)
    return Cell(row, dataset, seed, on_digits(config), evaluation, BUILT_IN)
