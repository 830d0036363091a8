"""Runs cells: finished ones are reused, failed ones are marked, the rest goes on."""

import contextlib
import json
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from scae import files
from scae.reproduce.code_version import code_version
from scae.reproduce.plan import FAILURE, KEY_LENGTH, RESULT, Cell
from scae.reproduce.processes import last_line

Status = Literal["finished", "failed", "not run"]
Launch = Callable[[Path], int]

INTERRUPTED = tuple(
    code for s in (signal.SIGINT, signal.SIGTERM) for code in (-s.value, 128 + s.value)
)
"""Exit codes of a cell that was asked to stop: not its fault, it continues next time."""


@dataclass(frozen=True)
class Outcome:
    """What became of a cell."""

    cell: Cell
    folder: Path
    status: Status
    result: dict[str, Any] | None = None
    reason: str = ""
    """Why it failed."""
    reused: bool = False
    other_code: bool = False
    """Trained by another version of the code than this one."""


def existing(cell: Cell, out: Path, any_code: bool = False) -> Outcome:
    """The state of a cell on disk.

    A finished run counts when configuration, data and code are the same; with `any_code`,
    the newest one of the same configuration and data.
    """
    folder = cell.folder(out)
    if (found := _finished(cell, folder)) is not None:
        return found
    if any_code:
        pattern = f"{cell.name}-{cell.key}-*"
        folders = sorted((out / "cells").glob(pattern), key=lambda path: path.stat().st_mtime)
        for other in reversed(folders):
            if (found := _finished(cell, other)) is not None:
                return found
    if cell.problem is not None:
        return Outcome(cell, folder, "failed", reason=cell.problem)
    failure = _read(folder / FAILURE)
    if failure is not None:
        return Outcome(cell, folder, "failed", reason=str(failure.get("reason", "")))
    return Outcome(cell, folder, "not run")


def run_cells(
    cells: Sequence[Cell],
    out: Path,
    launch: Launch,
    *,
    prepare: Callable[[Cell, Path], None],
    jobs: int = 1,
    any_code: bool = False,
    done: Callable[[Outcome, int, int], None] = lambda outcome, number, count: None,
) -> list[Outcome]:
    """The outcome of every cell, after running those that are not finished.

    `launch` runs the cell in a folder and returns its exit code; `done` hears of every
    outcome as it comes, with its number and how many there are.
    """
    outcomes: dict[str, Outcome] = {}
    waiting: dict[str, Cell] = {}
    for cell in cells:
        name = str(cell.folder(out))
        found = existing(cell, out, any_code)
        if found.status == "finished" or cell.problem is not None:
            outcomes[name] = found
            done(found, len(outcomes), len(cells))
        else:
            waiting[name] = cell
    pool = ThreadPoolExecutor(max(1, jobs))
    try:
        futures: dict[Future[Outcome], str] = {
            pool.submit(_run_one, cell, Path(name), launch, prepare): name
            for name, cell in waiting.items()
        }
        for future in as_completed(futures):
            outcomes[futures[future]] = future.result()
            done(future.result(), len(outcomes), len(cells))
    finally:
        # After an interruption the cells not begun are dropped; those running are the caller's.
        pool.shutdown(wait=False, cancel_futures=True)
    return [outcomes[str(cell.folder(out))] for cell in cells]


def _run_one(
    cell: Cell, folder: Path, launch: Launch, prepare: Callable[[Cell, Path], None]
) -> Outcome:
    begin, code = time.perf_counter(), 1
    try:
        prepare(cell, folder)
        (folder / FAILURE).unlink(missing_ok=True)
        code = launch(folder)
        reason = f"exit code {code}: {last_line(folder)}"
    except Exception as error:  # one cell's trouble is not the others'
        reason = f"{type(error).__name__}: {error}"
    result = _read(folder / RESULT)
    if result is not None:
        return Outcome(cell, folder, "finished", result)
    if code in INTERRUPTED:
        return Outcome(cell, folder, "not run", reason="interrupted")
    failure = {"reason": reason, "seconds": round(time.perf_counter() - begin, 1)}
    # A full disk fails the cell as well; the table still says why.
    with contextlib.suppress(OSError):
        files.write_json(folder / FAILURE, failure)
    return Outcome(cell, folder, "failed", reason=reason)


def _finished(cell: Cell, folder: Path) -> Outcome | None:
    result = _read(folder / RESULT)
    if result is None or result.get("key") != cell.key:
        return None
    other = not folder.name.endswith(code_version()[:KEY_LENGTH])
    return Outcome(cell, folder, "finished", result, reused=True, other_code=other)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
