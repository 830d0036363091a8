"""Ctrl-C and the scheduler's SIGTERM as requests to save and stop."""

import os
import signal
import threading
from types import FrameType
from typing import Any


class StopRequest:
    """Remembers the first stop signal; a second Ctrl-C interrupts at once.

    Under SLURM, SIGUSR1 (``sbatch --signal=USR1@90``) asks for the same.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._previous: dict[int, Any] = {}

    def install(self) -> None:
        """Listen; without effect outside the main thread, where Python cannot."""
        if threading.current_thread() is not threading.main_thread():
            return
        signals = [signal.SIGINT, signal.SIGTERM]
        if "SLURM_JOB_ID" in os.environ and hasattr(signal, "SIGUSR1"):
            signals.append(signal.SIGUSR1)
        for number in signals:
            self._previous[number] = signal.signal(number, self._receive)

    def remove(self) -> None:
        """Restore the handlers that were there before."""
        while self._previous:
            number, handler = self._previous.popitem()
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number
