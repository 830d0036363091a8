"""Stages of a training: parts alone, objects alone on fixed parts, then both together.

The parts must mean something before objects can explain them, and objects need many steps
that do not have to touch a pixel. Each stage has a learning-rate schedule of its own.
"""

from dataclasses import dataclass
from typing import Literal

from scae.config import TrainingConfig
from scae.errors import ScaeError

StageName = Literal["parts", "objects", "joint"]


@dataclass(frozen=True)
class Stage:
    """A run of steps in which the same terms of the loss are trained."""

    name: StageName
    start: int
    length: int


def stages(config: TrainingConfig) -> list[Stage]:
    """The stages of a training in order; empty ones are left out."""
    joint = config.steps - config.part_steps - config.object_steps
    if min(config.part_steps, config.object_steps) < 0 or joint < 0:
        raise ScaeError(
            f"training.part_steps ({config.part_steps}) and training.object_steps "
            f"({config.object_steps}) must not be negative, nor exceed training.steps "
            f"({config.steps}) together."
        )
    plan = (
        Stage("parts", 0, config.part_steps),
        Stage("objects", config.part_steps, config.object_steps),
        Stage("joint", config.part_steps + config.object_steps, joint),
    )
    return [stage for stage in plan if stage.length]


def stage_at(config: TrainingConfig, step: int) -> Stage:
    """The stage that a step belongs to; the last one for any step beyond the end."""
    plan = stages(config)
    return next((s for s in plan if step < s.start + s.length), plan[-1])
