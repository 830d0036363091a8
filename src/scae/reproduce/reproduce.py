"""`scae reproduce`: plan the cells, run what is missing, write the tables after every one."""

import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal

from scae import files
from scae.errors import ScaeError
from scae.reproduce.budgets import Budget, Length, Target
from scae.reproduce.data_at_hand import DataFinder
from scae.reproduce.page import html_page
from scae.reproduce.plan import Cell, cells_of
from scae.reproduce.processes import CellProcesses
from scae.reproduce.runner import Launch, Outcome, existing, run_cells
from scae.reproduce.summary import summarise
from scae.reproduce.tables import make_table
from scae.reproduce.text_formats import comma_separated, latex, markdown

TARGETS: tuple[Target, ...] = ("table1", "table2", "constellations")


@dataclass(frozen=True)
class Reproduction:
    """What a call of `reproduce` came to."""

    target: str
    budget: str
    cells: int
    finished: int
    reused: int
    failed: tuple[str, ...]
    """Names of the cells that failed."""
    files: tuple[Path, ...]
    """Tables written."""
    commands: tuple[str, ...] = ()
    """One for every cell that is not finished, if they were asked for."""

    @property
    def text(self) -> str:
        """For people."""
        if self.commands:
            return "\n".join(self.commands)
        failed = f", {len(self.failed)} failed" if self.failed else ""
        head = f"{self.finished} of {self.cells} runs finished ({self.reused} reused){failed}"
        return "\n".join([head, *(f"  {path}" for path in self.files)])


def reproduce(
    target: Literal["table1", "table2", "constellations", "all"],
    *,
    budget: Budget = "cpu",
    seeds: int | None = None,
    steps: int | None = None,
    only: Sequence[str] = (),
    jobs: int = 1,
    device: str = "auto",
    out: Path = Path("runs/reproduce"),
    data_dir: Path | None = None,
    any_code: bool = False,
    print_commands: bool = False,
    launch: Launch | None = None,
) -> Reproduction:
    """Make a table of the paper again, or all of them.

    Interrupted, the same call continues; finished cells are reused when configuration, code
    and data are the same (`any_code`: whatever the code). `only` keeps rows or groups of
    table 2. `launch` replaces the processes that run cells.
    """
    if jobs < 1:
        raise ScaeError(f"--jobs is {jobs}; give at least 1.")
    length, out = Length(budget, steps), Path(out).absolute()
    targets = TARGETS if target == "all" else (target,)
    finder = DataFinder(data_dir, download=budget != "smoke")
    # Tables show all that is finished, whatever part of it is asked for now.
    plan = {t: cells_of(t, length, seeds, finder) for t in targets}
    asked = [c for t in targets for c in cells_of(t, length, seeds, finder, only)]
    cells = list({c.folder(out): c for c in asked}.values())
    for cell in cells:
        if cell.problem is None:
            _make_room(cell, out, data_dir, device, any_code)
    if print_commands:
        waiting = [c for c in cells if existing(c, out, any_code).status != "finished"]
        commands = tuple(_command(c.folder(out)) for c in waiting if c.problem is None)
        return _report(target, budget, [existing(c, out, any_code) for c in cells], (), commands)

    folders = {t: {c.folder(out) for c in plan[t]} for t in targets}

    def write(about: Path | None = None) -> tuple[Path, ...]:
        written: list[Path] = []
        for t in targets if about is None else [t for t in targets if about in folders[t]]:
            outcomes = [existing(c, out, any_code) for c in plan[t]]
            written += _write_table(t, length, outcomes, out)
        return tuple(written)

    def done(outcome: Outcome, number: int, count: int) -> None:
        what = "reused" if outcome.reused else outcome.status
        why = f": {outcome.reason}" if outcome.reason else ""
        print(f"[{number}/{count}] {outcome.cell.name} {what}{why}", flush=True)
        if not outcome.reused:
            write(
                outcome.folder
            )  # a table to look at while the rest is trained, and after a power cut

    processes = CellProcesses(_threads(jobs, device))
    try:
        with _stopping(processes):
            outcomes = run_cells(
                cells,
                out,
                launch or processes,
                prepare=lambda cell, folder: cell.write(folder, data_dir, device),
                jobs=jobs,
                any_code=any_code,
                done=done,
            )
    finally:
        written = write()  # also when interrupted: as far as it came
    return _report(target, budget, outcomes, written)


def _make_room(cell: Cell, out: Path, data_dir: Path | None, device: str, any_code: bool) -> None:
    """A folder with the cell's specification, unless it is finished."""
    if existing(cell, out, any_code).status != "finished":
        cell.write(cell.folder(out), data_dir, device)


def _write_table(
    target: Target, length: Length, outcomes: Sequence[Outcome], out: Path
) -> list[Path]:
    table = make_table(target, outcomes)
    steps = "" if length.steps is None else f" --steps {length.steps}"
    seeds = len({o.cell.seed for o in outcomes})
    command = f"scae reproduce {target} --budget {length.budget}{steps} --seeds {seeds}"
    summary = summarise(length, outcomes, command)
    contents = {
        "md": markdown(table, summary, out),
        "csv": comma_separated(table, out, length.budget),
        "tex": latex(table, summary),
        "html": html_page(table, summary, out),
    }
    for suffix, text in contents.items():
        files.write_text(out / f"{target}.{suffix}", text)
    return [out / f"{target}.{suffix}" for suffix in contents]


def _report(
    target: str,
    budget: str,
    outcomes: Sequence[Outcome],
    written: tuple[Path, ...],
    commands: tuple[str, ...] = (),
) -> Reproduction:
    finished = [o for o in outcomes if o.status == "finished"]
    return Reproduction(
        target=target,
        budget=budget,
        cells=len(outcomes),
        finished=len(finished),
        reused=sum(o.reused for o in finished),
        failed=tuple(o.cell.name for o in outcomes if o.status == "failed"),
        files=written,
        commands=commands,
    )


def _command(folder: Path) -> str:
    return shlex.join([sys.executable, "-m", "scae.reproduce.cell", str(folder)])


def _threads(jobs: int, device: str) -> int | None:
    """Torch threads of each cell: all of them together should not exceed the cores."""
    if jobs == 1 or device not in ("auto", "cpu"):
        return None
    return max(1, (os.cpu_count() or 1) // jobs)


@contextmanager
def _stopping(processes: CellProcesses) -> Iterator[None]:
    """Ctrl-C and SIGTERM let running cells save what they have; the same call continues them."""
    before: Callable[[int, FrameType | None], object] | int | None = None
    in_main = threading.current_thread() is threading.main_thread()

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if in_main:
        before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except BaseException:
        processes.stop()
        raise
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)
