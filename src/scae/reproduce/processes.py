"""One process per cell, whose end cannot hurt the others."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

LOG = "log.txt"
GRACE_SECONDS = 60
# A fork server imports torch and Lightning once, not once per cell; only Linux forks safely.
METHOD = "forkserver" if sys.platform == "linux" else "spawn"


class CellProcesses:
    """Starts processes for cells and stops those that are left."""

    def __init__(self, threads: int | None) -> None:
        self._threads = threads
        self._context: Any = multiprocessing.get_context(METHOD)
        if METHOD == "forkserver":
            self._context.set_forkserver_preload(["scae.reproduce.cell"])
        self._running: set[BaseProcess] = set()
        self._stopped = False

    def __call__(self, folder: Path) -> int:
        """Run the cell in a folder to its end; returns the exit code, negative for a signal."""
        process = self._context.Process(target=_work, args=(str(folder), self._threads))
        if self._stopped:
            return -signal.SIGTERM
        process.start()
        self._running.add(process)
        process.join()
        self._running.discard(process)
        code = process.exitcode
        return 1 if code is None else code

    def stop(self) -> None:
        """Let running cells save their state and end."""
        self._stopped = True
        for process in list(self._running):
            with contextlib.suppress(OSError, AttributeError, ValueError):
                process.terminate()  # SIGTERM: training writes a checkpoint first
        # Each process is awaited by the thread that started it; two cannot read its exit code.
        end = time.monotonic() + GRACE_SECONDS
        while self._running and time.monotonic() < end:
            time.sleep(0.05)


def last_line(folder: Path) -> str:
    """What a cell said last, for the table."""
    try:
        lines = (folder / LOG).read_text(errors="replace").strip().splitlines()
    except OSError:
        return "no log"
    return lines[-1][:300] if lines else "no message"


def _work(folder: str, threads: int | None) -> None:
    """The whole life of a cell's process."""
    log = os.open(Path(folder) / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    _end_with_parent()
    from scae.reproduce.cell import main

    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    try:
        code = main([folder])
    except KeyboardInterrupt:  # Ctrl-C reaches all processes of a terminal
        code = 128 + signal.SIGINT
    except Exception:
        traceback.print_exc()
        code = 1
    sys.exit(code)


def _end_with_parent() -> None:
    """Save and stop when the process that planned the cells is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
