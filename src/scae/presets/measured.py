"""Measured rows of `scae presets`, generated from the run files in results/."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

NOT_THERE = "not in the paper"
"""The paper's value of what it does not report."""


@dataclass(frozen=True)
class Measurement:
    """What a preset reached here, beside the paper's value."""

    metric: str
    paper: str
    ours: str
    seeds: int
    steps: int
    hours: float

    @property
    def sentence(self) -> str:
        """One line for people."""
        seeds = "seed" if self.seeds == 1 else "seeds"
        paper = self.paper if self.paper == NOT_THERE else f"paper {self.paper}"
        return (
            f"{self.metric} {self.ours} ({paper}), {self.seeds} {seeds}, "
            f"{self.steps} steps, {self.hours:.2g} h"
        )


@cache
def _rows() -> dict[str, Measurement]:
    text = files("scae.presets").joinpath("measured.json").read_text(encoding="utf-8")
    return {name: Measurement(**row) for name, row in json.loads(text).items()}


def measured(name: str) -> Measurement | None:
    """The measured row of a preset, or None where nothing has been measured."""
    return _rows().get(name)
