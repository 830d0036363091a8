"""What to do with a step whose loss or gradient is not finite."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from scae.config import TrainingConfig
from scae.errors import ScaeError

ROLLBACK_LR_FACTOR = 0.5


class Verdict(Enum):
    """The guard's answer to one step."""

    UPDATE = "update"
    SKIP = "skip"
    ROLL_BACK = "roll back"


@dataclass
class Guard:
    """Counts non-finite steps: one is skipped, several in a row undo the last stretch.

    After a roll-back the same batches are seen again with half the learning rate.
    """

    max_bad_steps: int
    max_rollbacks: int
    in_a_row: int = 0
    skipped: int = 0
    rollbacks: int = 0
    lr_factor: float = 1.0

    @classmethod
    def of(cls, config: TrainingConfig) -> "Guard":
        return cls(max(1, config.max_bad_steps), config.max_rollbacks)

    def judge(self, finite: bool, overflow: bool = False) -> Verdict:
        """Verdict on a step.

        `overflow` marks a 16-bit gradient that left its range: loss scaling expects that from
        time to time and lowers its scale, so it is skipped without counting towards a roll-back.
        """
        if finite:
            self.in_a_row = 0
            return Verdict.UPDATE
        self.skipped += 1
        if overflow:
            return Verdict.SKIP
        self.in_a_row += 1
        return Verdict.SKIP if self.in_a_row < self.max_bad_steps else Verdict.ROLL_BACK

    def roll_back(self, step: int, cause: str) -> None:
        """Note a roll-back from `step`, or give up with a sentence that says what to change."""
        if self.rollbacks >= self.max_rollbacks:
            raise ScaeError(
                f"Training stopped at step {step}: {cause}, after {self.rollbacks} roll-backs "
                "with lower learning rates. Lower optimizer.lr, set optimizer.clip (for example "
                "to 1) or lengthen optimizer.warmup, then start in a new folder."
            )
        self.rollbacks += 1
        self.in_a_row = 0
        self.lr_factor *= ROLLBACK_LR_FACTOR

    def state(self) -> dict[str, Any]:
        """Counters for a checkpoint."""
        return {
            "in_a_row": self.in_a_row,
            "skipped": self.skipped,
            "rollbacks": self.rollbacks,
            "lr_factor": self.lr_factor,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Counters from a checkpoint."""
        self.in_a_row = int(state["in_a_row"])
        self.skipped = int(state["skipped"])
        self.rollbacks = int(state["rollbacks"])
        self.lr_factor = float(state["lr_factor"])
