"""Timing of several things against each other in one run."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from scae.errors import ScaeError

Work = Callable[[], object]


@dataclass(frozen=True)
class Spread:
    """Seconds of one piece of work over all rounds."""

    median: float
    q25: float
    q75: float
    best: float
    rounds: int

    @classmethod
    def of(cls, seconds: list[float]) -> "Spread":
        """Median, quartiles and minimum of measured seconds."""
        low, middle, high = np.quantile(seconds, [0.25, 0.5, 0.75]).tolist()
        return cls(middle, low, high, min(seconds), len(seconds))

    @property
    def text(self) -> str:
        """Milliseconds: the median and the quartiles."""
        return f"{1e3 * self.median:.1f} ms (IQR {1e3 * self.q25:.1f} to {1e3 * self.q75:.1f})"


def interleave(works: Mapping[str, Work], rounds: int, warmup: int = 2) -> dict[str, list[float]]:
    """Seconds of every work in every round.

    Works take turns, so that a machine that becomes slower for a while does so for all of
    them; the order turns round every time, so that none is always timed after the same one.
    """
    if rounds < 1:
        raise ScaeError(f"--rounds is {rounds}; give at least 1.")
    for _ in range(warmup):
        for work in works.values():
            work()
    seconds: dict[str, list[float]] = {name: [] for name in works}
    order = list(works)
    for turn in range(rounds):
        for name in order if turn % 2 == 0 else reversed(order):
            begin = time.perf_counter()
            works[name]()
            seconds[name].append(time.perf_counter() - begin)
    return seconds
