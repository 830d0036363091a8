"""The cells of a table: one training each, with a row, a data set and a seed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from scae import config, files
from scae.config import ConstellationExperiment, Experiment, ImageExperiment
from scae.errors import ScaeError, did_you_mean
from scae.presets import preset, recipe
from scae.presets.ablations import ABLATIONS, ablate

Target = Literal["table1", "table2", "constellations"]
Budget = Literal["smoke", "cpu", "paper"]
Transfer = Literal["affnist", "affnist-style"]

DATASETS: dict[str, tuple[str, ...]] = {
    "table1": ("mnist", "cifar10", "svhn"),
    "table2": ("mnist", "mnist40"),
    "constellations": ("constellations",),
}
ROWS: dict[str, tuple[str, ...]] = {
    "table1": ("full",),
    "table2": ("full", *ABLATIONS),
    "constellations": ("full", "no-two-parts", "baseline"),
}
TABLE2_STEPS = {"mnist": 8_000, "mnist40": 8_000}
"""Steps on a CPU: 13 rows times two seeds at the presets' own steps would take days."""
PAPER_SEEDS = {"table1": 5, "table2": 10, "constellations": 5}
SMOKE_STEPS, SMOKE_BATCH, SMOKE_EXAMPLES = 5, 16, 200
SETTINGS = "settings.json"


@dataclass(frozen=True)
class Settings:
    """How a table is made; kept beside its cells, so that a later call continues it."""

    budget: Budget = "cpu"
    """`smoke`: a few steps on the embedded digits; `cpu`: the recommended presets; `paper`: the
    literal ones."""
    steps: Sequence[int] = ()
    """Steps of every training, one number or one per data set; default: by the budget."""
    seeds: int | None = None
    """Trainings of every row; None: as in the paper, or on a CPU 3, of ablations 2."""
    transfer: Transfer = "affnist-style"
    """What models of 40x40 MNIST are scored on as well."""

    @staticmethod
    def read(folder: Path, **given: Any) -> "Settings":
        """The settings of a table that was begun, changed where `given` is neither None nor ()."""
        changes = {name: value for name, value in given.items() if value not in (None, ())}
        return Settings(**(files.read_json(folder / SETTINGS) | changes))

    def seed_count(self, target: Target, row: str) -> int:
        """Seeds of a row."""
        if self.seeds is not None:
            return self.seeds
        cpu = 2 if target == "table2" and row != "full" else 3
        return {"smoke": 1, "cpu": cpu, "paper": PAPER_SEEDS[target]}[self.budget]

    def step_count(self, target: Target, dataset: str, preset_steps: int) -> int:
        """Steps of a training."""
        if self.steps:
            several = len(self.steps) > 1
            return self.steps[DATASETS[target].index(dataset) if several else 0]
        if self.budget == "smoke":
            return SMOKE_STEPS
        short = self.budget == "cpu" and target == "table2"
        return TABLE2_STEPS[dataset] if short else preset_steps


@dataclass(frozen=True)
class Cell:
    """One training of a table and the data sets that it is scored on."""

    target: Target
    row: str
    dataset: str
    seed: int
    experiment: Experiment
    scored_on: tuple[str | None, ...] = (None,)
    """None: the experiment's own data."""
    limit: int | None = None
    """Examples of each split to score; None: all."""

    @property
    def name(self) -> str:
        return f"{self.row}-{self.dataset}-seed{self.seed}"

    def place(self) -> dict[str, Any]:
        """Where it belongs and how it is trained, as JSON values."""
        keys = ("target", "row", "dataset", "seed")
        return {k: vars(self)[k] for k in keys} | {"experiment": config.to_json(self.experiment)}


def plan(target: Target, settings: Settings, only: Sequence[str] = ()) -> list[Cell]:
    """All cells of a table, the first seeds of all rows first; `only` names rows or groups."""
    datasets, rows = DATASETS[target], ROWS[target]
    if len(settings.steps) not in (0, 1, len(datasets)):
        raise ScaeError(
            f"{target} trains on {', '.join(datasets)}; give --steps one number or one for each."
        )
    for name in only:
        if name not in rows and name not in {a.group for a in ABLATIONS.values()}:
            hint = did_you_mean(name, rows, f"there are {', '.join(rows)}.")
            raise ScaeError(f"{target} has no row {name!r}; {hint}")
    counts = {
        row: settings.seed_count(target, row)
        for row in rows
        if not only or row in only or group(row) in only
    }
    return [
        _cell(target, row, dataset, seed, settings)
        for seed in range(max(counts.values(), default=0))
        for row in counts
        if seed < counts[row]
        for dataset in datasets
    ]


def group(row: str) -> str:
    """Group of a row of table 2: a to f, nothing for the full model."""
    return ABLATIONS[row].group if row in ABLATIONS else ""


def _cell(target: Target, row: str, dataset: str, seed: int, settings: Settings) -> Cell:
    full = _points(row, settings) if target == "constellations" else _images(row, dataset, settings)
    smoke = settings.budget == "smoke"
    steps = settings.step_count(target, dataset, full.training.steps)
    training = replace(full.training, seed=seed, steps=steps)
    if smoke:
        training = replace(training, batch=SMOKE_BATCH)
    optimizer = full.optimizer
    if settings.budget != "paper" and steps < full.training.steps:
        optimizer = recipe.short(optimizer, steps)
    experiment = replace(full, training=training, optimizer=optimizer)
    transfer = (settings.transfer,) if dataset == "mnist40" and not smoke else ()
    limit = SMOKE_EXAMPLES if smoke else None
    return Cell(target, row, dataset, seed, experiment, (None, *transfer), limit)


def _images(row: str, dataset: str, settings: Settings) -> ImageExperiment:
    full = preset(f"{dataset}-paper" if settings.budget == "paper" else dataset)
    assert isinstance(full, ImageExperiment)
    # Table 2 scores test images (section 3.3), so no model of it trains on them.
    data, model = replace(full.data, split="train"), full.model
    if settings.budget == "smoke":
        size = None if data.canvas else model.image_size[0]
        data, model = replace(data, name="digits", size=size), replace(model, channels=1)
    full = replace(full, data=data, model=model)
    return full if row == "full" else ablate(full, row)


def _points(row: str, settings: Settings) -> ConstellationExperiment:
    full = preset("constellation-paper" if settings.budget == "paper" else "constellation")
    assert isinstance(full, ConstellationExperiment)
    if row == "no-two-parts":
        full = replace(full, loss=replace(full.loss, two_parts=0.0))
    elif row == "baseline":
        full = replace(full, model=replace(full.model, decoder="baseline"))
    return full if row == "full" else replace(full, name=f"{full.name}/{row}")
