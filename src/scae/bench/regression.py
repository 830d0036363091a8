"""Whether a step has become slower than the committed ratio: a test that survives noise."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scae.bench.training_step import step
from scae.errors import ScaeError

ATTEMPTS = 3
ROUNDS = 10
IMAGES = 4096


@dataclass(frozen=True)
class Comparison:
    """A preset's ratio to its convolutions, committed and now."""

    preset: str
    committed: float
    measured: float
    limit: float
    attempts: int

    @property
    def passed(self) -> bool:
        return self.measured <= self.limit

    @property
    def text(self) -> str:
        """One line for people."""
        verdict = "fine" if self.passed else "SLOWER"
        return (
            f"{self.preset}: {self.measured:.2f} times its convolutions, committed "
            f"{self.committed:.2f}, limit {self.limit:.2f}: {verdict} "
            f"({self.attempts} of {ATTEMPTS} attempts)"
        )


@dataclass(frozen=True)
class Verdict:
    """All comparisons of a check."""

    comparisons: tuple[Comparison, ...]

    @property
    def text(self) -> str:
        """For people."""
        return "\n".join(comparison.text for comparison in self.comparisons)


def check(against: Path, tolerance: float = 0.4) -> Verdict:
    """Measure every committed preset again; raises when one has become slower.

    A ratio above the limit is measured again, and the best of three attempts counts: noise of
    the machine can only make a step slower.
    """
    comparisons = []
    for preset, committed in read_committed(against).items():
        limit = committed * (1 + tolerance)
        best, attempts = float("inf"), 0
        while attempts < ATTEMPTS and best > limit:
            found = step(preset, rounds=ROUNDS, memory=False, images=IMAGES)
            assert found.ratio_to_convolutions is not None
            best, attempts = min(best, found.ratio_to_convolutions), attempts + 1
        comparisons.append(Comparison(preset, committed, best, limit, attempts))
    verdict = Verdict(tuple(comparisons))
    if not all(comparison.passed for comparison in comparisons):
        slower = "; ".join(c.text for c in comparisons if not c.passed)
        raise ScaeError(
            f"A training step has become slower by more than {tolerance:.0%} ({slower}); make it "
            "fast again, or commit the new ratio with `scae bench record` and say why."
        )
    return verdict


def read_committed(path: Path) -> dict[str, float]:
    """Committed ratios to the convolutions, by preset."""
    try:
        value: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise ScaeError(f"{path} cannot be read ({error.strerror}); give --against FILE.") from None
    except (ValueError, RecursionError):
        value = None
    ratios = value.get("ratio_to_convolutions") if isinstance(value, dict) else None
    if not isinstance(ratios, dict) or not ratios or not all(map(_is_ratio, ratios.values())):
        raise ScaeError(
            f"{path} holds no committed ratios: expected JSON with an object "
            "'ratio_to_convolutions' of preset names and positive numbers, as `scae bench record` "
            "writes it."
        )
    return {str(name): float(ratio) for name, ratio in ratios.items()}


def _is_ratio(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e6
