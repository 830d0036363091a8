"""How much the page's server takes on before it says no."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on requests; far above what one person at one page needs."""

    body: int = 1_000_000
    """Bytes of a request's body."""
    body_seconds: float = 10.0
    """Time a body may take to arrive."""
    rate: float = 500.0
    """Requests per second of those who know the token."""
    burst: float = 1000.0
    """Requests they may save up."""
    stranger_rate: float = 5.0
    """Requests per second of all others together, so that tokens cannot be guessed."""
    stranger_burst: float = 40.0


class Bucket:
    """A token bucket: `burst` requests at once, `rate` per second in the long run."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic):
        self._rate, self._burst, self._clock = rate, burst, clock
        self._level, self._last = burst, clock()

    def take(self) -> bool:
        """Whether one more request may pass."""
        now = self._clock()
        self._level = min(self._burst, self._level + (now - self._last) * self._rate)
        self._last = now
        if self._level < 1:
            return False
        self._level -= 1
        return True
