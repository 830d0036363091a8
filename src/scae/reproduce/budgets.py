"""How long a cell trains: the experiment of a row and data set under a budget."""

from dataclasses import dataclass, replace
from typing import Literal

from scae.config import ConstellationExperiment, Experiment, ImageExperiment
from scae.errors import ScaeError
from scae.presets import preset, recipe
from scae.presets.ablations import ablate

Budget = Literal["smoke", "cpu", "paper"]
Target = Literal["table1", "table2", "constellations"]

SMOKE_STEPS, SMOKE_BATCH = 5, 16  # at least one step of each stage
SMOKE_EXAMPLES = 200
PAPER_SEEDS: dict[Target, int] = {"table1": 5, "table2": 10, "constellations": 5}

MEANING: dict[Budget, str] = {
    "smoke": f"{SMOKE_STEPS} steps of {SMOKE_BATCH} examples, scored on {SMOKE_EXAMPLES}: shows "
    "that every cell runs, says nothing about the model",
    "cpu": "the recommended recipes of this package",
    "paper": "the presets as printed, 300 000 steps",
}


@dataclass(frozen=True)
class Length:
    """A budget and, if wanted, another number of steps for all cells."""

    budget: Budget
    steps: int | None = None

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise ScaeError(f"--steps is {self.steps}; give at least 1.")

    def seeds(self, target: Target) -> int:
        """Runs per cell unless asked for another number."""
        return PAPER_SEEDS[target] if self.budget == "paper" else 1

    @property
    def examples(self) -> int | None:
        """Examples of each split to score; None for all."""
        return SMOKE_EXAMPLES if self.budget == "smoke" else None

    @property
    def text(self) -> str:
        """What the budget means."""
        steps = "" if self.steps is None else f", with {self.steps} steps per run instead"
        return f"{self.budget} ({MEANING[self.budget]}{steps})"


def experiment(target: Target, dataset: str, row: str, length: Length, seed: int) -> Experiment:
    """The complete configuration of one run; `row` is `full` or what is left out."""
    if target == "constellations":
        return _timed(_points(row, length), length, seed)
    full = preset(f"{dataset}-paper" if length.budget == "paper" else dataset)
    assert isinstance(full, ImageExperiment)
    if target == "table2":
        # Table 2 reports the test split (section 3.3), so no model of it trains on that.
        full = replace(full, data=replace(full.data, split="train"))
    return _timed(full if row == "full" else ablate(full, row), length, seed)


def _points(row: str, length: Length) -> ConstellationExperiment:
    full = preset("constellation-paper" if length.budget == "paper" else "constellation")
    assert isinstance(full, ConstellationExperiment)
    if row == "no-two-parts":
        loss = replace(full.loss, two_parts=0.0)
        return replace(full, name=f"{full.name}/no-two-parts", loss=loss)
    if row == "baseline":
        model = replace(full.model, decoder="baseline")
        return replace(full, name=f"{full.name}/baseline", model=model)
    return full


def _timed(full: Experiment, length: Length, seed: int) -> Experiment:
    training, optimizer = replace(full.training, seed=seed), full.optimizer
    if length.budget == "smoke":
        training = replace(training, steps=SMOKE_STEPS, batch=SMOKE_BATCH)
    if length.steps is not None:
        training = replace(training, steps=length.steps)
    if length.budget != "paper" and training.steps < full.training.steps:
        optimizer = recipe.short(optimizer, training.steps)
    return replace(full, training=training, optimizer=optimizer)
