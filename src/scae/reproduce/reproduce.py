"""Plan the cells of a table, run those that are missing, write the table after every one."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from scae import config, files
from scae.errors import ScaeError
from scae.reproduce.plan import DATASETS, Budget, Cell, Settings, Target, Transfer, plan
from scae.reproduce.tables import markdown

SETTINGS = "settings.json"

Launch = Callable[[Path], str | None]
"""Runs the cell of a specification; returns why it failed, or None."""


@dataclass(frozen=True)
class Reproduction:
    """What a call of `reproduce` came to."""

    table: Path
    cells: int
    finished: int
    failed: dict[str, str]
    """Reasons by name of the cell."""

    @property
    def text(self) -> str:
        """For people."""
        failures = [f"{name} failed: {why}" for name, why in self.failed.items()]
        return "\n".join([f"{self.table}: {self.finished} of {self.cells} trainings", *failures])


def reproduce(
    target: Target,
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
    """Make a table of the paper again in `out/TARGET`.

    Finished cells are kept and interrupted ones continued, `jobs` of them side by side with
    one thread each. A table that was begun keeps its settings unless others are given. `only`
    trains some rows or groups of table 2; `table_only` trains nothing. `launch` replaces the
    processes that run cells.
    """
    if target not in DATASETS:
        raise ScaeError(f"There is no table {target!r}; there are {', '.join(DATASETS)}.")
    folder = Path(out) / target
    options = {"budget": budget, "steps": steps, "seeds": seeds, "transfer": transfer}
    given = {name: value for name, value in options.items() if value is not None}
    settings = Settings(**(files.read_json(folder / SETTINGS) | given))
    cells = plan(target, settings)
    asked = [] if table_only else plan(target, settings, only)
    waiting = [cell for cell in asked if not _finished(cell, folder)]
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    if not table_only:
        files.write_json(folder / SETTINGS, dataclasses.asdict(settings))
    table, failed = folder / f"{target}.md", dict[str, str]()

    def write() -> int:
        found = [files.read_json(folder / "cells" / f"{cell.name}.json") for cell in cells]
        known = [cell for cell in found if cell]
        files.write_text(table, markdown(target, settings, known, len(cells)))
        return len(known)

    # Cells hold the reading end: they save and stop when this process closes its end or dies.
    reading, writing = os.pipe()
    launch = launch or (lambda spec: _launch(spec, reading))
    pool = ThreadPoolExecutor(max(1, jobs))
    try:
        futures = {}
        for cell in waiting:
            spec = folder / "runs" / f"{cell.name}.json"
            files.write_json(spec, cell.specification(data_dir))
            futures[pool.submit(launch, spec)] = cell.name
        for number, future in enumerate(as_completed(futures), start=1):
            name, reason = futures[future], future.result()
            if reason is not None:
                failed[name] = reason
            write()
            status = "finished" if reason is None else f"failed: {reason}"
            print(f"[{number}/{len(futures)}] {target} {name} {status}", flush=True)
    finally:
        os.close(writing)
        pool.shutdown(cancel_futures=True)
        os.close(reading)
        finished = write()
    return Reproduction(table, len(cells), finished, failed)


def _finished(cell: Cell, folder: Path) -> bool:
    """Whether a cell has a result; one of another configuration is never overwritten."""
    path = folder / "cells" / f"{cell.name}.json"
    if not path.is_file():
        return False
    made = config.from_json(json.dumps(files.read_json(path)["experiment"]), str(path))
    if changes := config.differences(made, cell.experiment):
        raise ScaeError(
            f"{path} was made with another configuration ({'; '.join(changes[:3])}); give the "
            "same options, another --out, or --table-only to write the table from what is there."
        )
    return True


def _launch(spec: Path, stdin: int) -> str | None:
    """Run a cell in its own process, so that the end of one cannot hurt the others."""
    log = spec.with_suffix(".log")
    command = [sys.executable, "-m", "scae.reproduce.cell", str(spec)]
    # Two trainings of one thread each are faster than two after another with two threads.
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    with open(log, "ab") as file:
        code = subprocess.run(
            command, stdin=stdin, stdout=file, stderr=file, env=one_thread
        ).returncode
    if code == 0:
        log.unlink(missing_ok=True)
        return None
    lines = log.read_text(errors="replace").strip().splitlines() or ["no message"]
    return f"exit code {code}: {lines[-1][:300]}"
