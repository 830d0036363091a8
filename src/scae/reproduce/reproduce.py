"""Plan the cells of a table, run those that are missing, write the table after every one."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from scae import config, files
from scae.errors import ScaeError
from scae.reproduce.plan import TARGETS, Budget, Cell, Settings, Target, Transfer, plan
from scae.reproduce.tables import markdown

SETTINGS = "settings.json"

Launch = Callable[[Path, Path, Path], str | None]
"""Runs a cell from its specification, folder and result file; returns why it failed, or None."""


@dataclass(frozen=True)
class Reproduction:
    """What a call of `reproduce` came to."""

    cells: int
    finished: int
    failed: dict[str, str]
    """Reasons by name of the cell."""
    files: tuple[Path, ...]
    """Tables written."""

    @property
    def text(self) -> str:
        """For people."""
        lines = [f"{self.finished} of {self.cells} cells finished", *map(str, self.files)]
        return "\n".join([*lines, *(f"{name} failed: {why}" for name, why in self.failed.items())])


def reproduce(
    target: Target | Literal["all"],
    *,
    budget: Budget | None = None,
    steps: int | None = None,
    seeds: int | None = None,
    transfer: Transfer | None = None,
    only: Sequence[str] = (),
    jobs: int = 1,
    out: Path | str = "results",
    data_dir: Path | None = None,
    table_only: bool = False,
    launch: Launch | None = None,
) -> Reproduction:
    """Make a table of the paper again, or all of them, in `out/TARGET`.

    Finished cells are kept and interrupted ones continued, `jobs` of them side by side with
    one thread each. A table that was begun keeps its settings unless others are given. `only`
    trains some rows or groups of table 2; `table_only` trains nothing. `launch` replaces the
    processes that run cells.
    """
    if target == "all":
        given: dict[str, Any] = {"budget": budget, "steps": steps, "seeds": seeds, "only": only}
        given |= {"transfer": transfer, "jobs": jobs, "out": out, "data_dir": data_dir}
        given |= {"table_only": table_only, "launch": launch}
        done = [reproduce(each, **given) for each in TARGETS]
        return Reproduction(
            sum(each.cells for each in done),
            sum(each.finished for each in done),
            {name: why for each in done for name, why in each.failed.items()},
            tuple(path for each in done for path in each.files),
        )
    if target not in get_args(Target):
        raise ScaeError(f"There is no table {target!r}; there are {', '.join(TARGETS)} and all.")
    folder = Path(out) / target
    options = {"budget": budget, "steps": steps, "seeds": seeds, "transfer": transfer}
    settings = _settings(folder, options)
    cells = plan(target, settings)
    asked = [] if table_only else plan(target, settings, only)
    waiting = [cell for cell in asked if not _finished(cell, folder)]
    folder.mkdir(parents=True, exist_ok=True)
    if not table_only:
        files.write_json(folder / SETTINGS, dataclasses.asdict(settings))
    table = folder / f"{target}.md"
    failed: dict[str, str] = {}

    def write() -> int:
        found = read_cells(folder)
        known = [found[cell.name] for cell in cells if cell.name in found]
        files.write_text(table, markdown(target, settings, known, len(cells)))
        return len(known)

    finished = write()
    processes = _Processes()
    pool = ThreadPoolExecutor(max(1, jobs))
    try:
        futures: dict[Future[str | None], Cell] = {
            pool.submit(_run, cell, folder, data_dir, launch or processes): cell for cell in waiting
        }
        for number, future in enumerate(as_completed(futures), start=1):
            name, reason = futures[future].name, future.result()
            if reason is not None:
                failed[name] = reason
            finished = write()
            status = "finished" if reason is None else f"failed: {reason}"
            print(f"[{number}/{len(futures)}] {target} {name} {status}", flush=True)
    finally:  # also when interrupted: running cells save, the others wait for the next call
        pool.shutdown(wait=False, cancel_futures=True)
        processes.stop()
    return Reproduction(len(cells), finished, failed, (table,))


def read_cells(folder: Path) -> dict[str, dict[str, Any]]:
    """Finished cells of a table by name."""
    paths = sorted((folder / "cells").glob("*.json"))
    return {path.stem: json.loads(path.read_bytes()) for path in paths}


def _settings(folder: Path, options: dict[str, Any]) -> Settings:
    """Settings of a table: those given, those it was begun with, the defaults."""
    path = folder / SETTINGS
    begun = json.loads(path.read_bytes()) if path.is_file() else {}
    given = {name: value for name, value in options.items() if value is not None}
    return Settings(**(begun | given))


def _finished(cell: Cell, folder: Path) -> bool:
    """Whether a cell has a result; one of another configuration is never overwritten."""
    path = folder / "cells" / f"{cell.name}.json"
    if not path.is_file():
        return False
    stored = json.loads(path.read_bytes())["experiment"]
    made = config.from_json(json.dumps(stored), str(path))
    if changes := config.differences(made, cell.experiment):
        raise ScaeError(
            f"{path} was made with another configuration ({'; '.join(changes[:3])}); give the "
            "same options, another --out, or --table-only to write the table from what is there."
        )
    return True


def _run(cell: Cell, folder: Path, data_dir: Path | None, launch: Launch) -> str | None:
    from scae.reproduce.cell import specification  # needs torch, which tables alone do not

    runs = folder / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    spec = runs / f"{cell.name}.json"
    files.write_json(spec, specification(cell, data_dir))
    return launch(spec, runs / cell.name, folder / "cells" / f"{cell.name}.json")


class _Processes:
    """One process per cell, so that the end of one cannot hurt the others."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def __call__(self, spec: Path, folder: Path, result: Path) -> str | None:
        if self._stopped:
            return "interrupted"
        log = spec.with_suffix(".log")
        command = [sys.executable, "-m", "scae.reproduce.cell", *map(str, (spec, folder, result))]
        # Two trainings of one thread each are faster than two after another with two threads.
        one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
        with open(log, "ab") as file:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=file, stderr=file, env=one_thread
            )
        self._running.add(process)
        code = process.wait()
        self._running.discard(process)
        if code == 0:
            log.unlink(missing_ok=True)
            return None
        lines = log.read_text(errors="replace").strip().splitlines() or ["no message"]
        return f"exit code {code}: {lines[-1][:300]}"

    def stop(self) -> None:
        """Let running cells write a checkpoint and end."""
        self._stopped = True
        for process in list(self._running):
            process.terminate()
