"""Stages of a training: parts alone, objects alone on fixed parts, then both together.

The parts must mean something before objects can explain them, and objects need many steps
that do not have to touch a pixel. Each stage has a learning-rate schedule of its own.
"""

from dataclasses import dataclass
from typing import Literal

from scae.config import TrainingConfig
from scae.errors import ScaeError

TINY = 1e-9  # shares are fractions of steps, whose sum is 1 but for rounding

StageName = Literal["parts", "objects", "joint"]


@dataclass(frozen=True)
class Stage:
    """A run of steps in which the same terms of the loss are trained."""

    name: StageName
    start: int
    length: int


def stages(config: TrainingConfig) -> list[Stage]:
    """The stages of a training in order, each with a step at least; empty ones are left out."""
    shares = config.part_share, config.object_share
    if not (min(shares) >= 0 and sum(shares) <= 1):
        raise ScaeError(
            f"training.part_share ({shares[0]}) and training.object_share ({shares[1]}) are "
            "shares of all steps: give numbers from 0 to 1 whose sum is at most 1."
        )
    names: tuple[StageName, ...] = ("parts", "objects", "joint")
    wanted = *shares, 1 - sum(shares)
    plan: list[Stage] = []
    start, done = 0, 0.0
    for index, (name, share) in enumerate(zip(names, wanted, strict=True)):
        done += share
        later = sum(other > TINY for other in wanted[index + 1 :])
        # However short a training is, what a stage prepares is there for the next one.
        end = min(max(round(done * config.steps), start + (share > TINY)), config.steps - later)
        if end > start:
            plan.append(Stage(name, start, end - start))
            start = end
    return plan


def stage_at(config: TrainingConfig, step: int) -> Stage:
    """The stage that a step belongs to; the last one for any step beyond the end."""
    plan = stages(config)
    return next((s for s in plan if step < s.start + s.length), plan[-1])
