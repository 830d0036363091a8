"""The paper's tables and figures, made again.

A table is planned as cells, those that are missing are trained, and it is written after each.
"""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from scae import config, files
from scae.errors import ScaeError
from scae.reproduce.plan import SETTINGS, Budget, Cell, Settings, Target, Transfer, plan
from scae.reproduce.tables import markdown

__all__ = ["FIGURES", "Reproduction", "reproduce", "reproduce_figure"]

FIGURES: dict[str, tuple[str, tuple[str, ...]]] = {
    "figure1": ("tsne", ("mnist",)),
    "figure3": ("constellations", ("constellation",)),
    "figure4": ("templates", ("mnist", "svhn", "cifar10")),
    "figure5": ("reconstructions", ("mnist",)),
    "appendix-b": ("reconstructions", ("svhn", "cifar10")),
}
"""Figures of the paper: how `scae figures` calls them, and the models they are of."""
STOP_CODES, STOPPED = (-2, -15, 130, 143), "stopped"
"""Exit codes of a process that was asked to stop: its cell is unfinished, not failed."""

Launch = Callable[[Path, str], str | None]
"""Runs a cell by the table's folder and its name; returns why it failed, or None."""


@dataclasses.dataclass(frozen=True)
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
    steps: Sequence[int] = (),
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
    folder = Path(out) / target
    settings = Settings.read(folder, budget=budget, steps=steps, seeds=seeds, transfer=transfer)
    cells = plan(target, settings)
    asked = [] if table_only else plan(target, settings, only)
    waiting = [cell for cell in asked if not _finished(cell, folder)]
    for place in ("runs", "cells"):
        (folder / place).mkdir(parents=True, exist_ok=True)
    if not table_only:
        files.write_json(folder / SETTINGS, dataclasses.asdict(settings))

    def write() -> Reproduction:
        known = [r for cell in cells if (r := files.read_json(_result(folder, cell.name)))]
        files.write_text(folder / f"{target}.md", markdown(folder, settings, known, len(cells)))
        failed = {f"{r['row']}-{r['dataset']}-seed{r['seed']}": r for r in known if "failed" in r}
        reasons = {name: result["failed"] for name, result in failed.items()}
        finished = len(known) - len(failed)
        return Reproduction(folder / f"{target}.md", len(cells), finished, reasons)

    # Cells hold the reading end: they save and stop when this process closes its end or dies.
    reading, writing = os.pipe()
    launch = launch or (lambda folder, name: _launch(folder, name, reading, data_dir))
    pool = ThreadPoolExecutor(max(1, jobs))
    try:
        futures = {pool.submit(launch, folder, cell.name): cell for cell in waiting}
        for number, future in enumerate(as_completed(futures), start=1):
            cell, reason = futures[future], future.result()
            if reason not in (None, STOPPED):
                # The next call tries it again.
                files.write_json(_result(folder, cell.name), cell.place() | {"failed": reason})
            write()
            status = reason or "finished"
            print(f"[{number}/{len(futures)}] {target} {cell.name}: {status}", flush=True)
    finally:
        os.close(writing)
        pool.shutdown(cancel_futures=True)
        os.close(reading)
        done = write()
    return done


def reproduce_figure(
    name: str, out: Path | str = "results", data_dir: Path | None = None
) -> tuple[list[Path], list[str]]:
    """Draw a figure of the paper from the shipped models as `out/figures/MODEL/FIGURE.png`.

    Returns the files and the models that would belong to it but are not shipped.
    """
    from scae.api import load, shipped
    from scae.figures import make_figures

    figure, models = FIGURES[name]
    drawn: list[Path] = []
    for model in models:
        if model in shipped():
            folder = Path(out) / "figures" / model
            drawn += make_figures(load(model), folder, data_dir, names=[figure])
    return drawn, [model for model in models if model not in shipped()]


def _result(folder: Path, name: str) -> Path:
    return folder / "cells" / f"{name}.json"


def _finished(cell: Cell, folder: Path) -> bool:
    """Whether a cell has a result; one of another configuration is never overwritten."""
    path = _result(folder, cell.name)
    result = files.read_json(path)
    if not result or "failed" in result:
        return False
    made = config.from_json(json.dumps(result["experiment"]), str(path))
    if changes := config.differences(made, cell.experiment):
        raise ScaeError(
            f"{path} was made with another configuration ({'; '.join(changes[:3])}); give the "
            "same options, another --out, or --table-only to write the table from what is there."
        )
    return True


def _launch(folder: Path, name: str, stdin: int, data_dir: Path | None) -> str | None:
    """Run a cell in its own process, so that the end of one cannot hurt the others."""
    log = folder / "runs" / f"{name}.log"
    command = [sys.executable, "-m", "scae.reproduce.cell", str(folder), name]
    # Two trainings of one thread each are faster than two after another with two threads.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if data_dir is not None:
        environment["SCAE_DATA"] = str(data_dir.absolute())
    with open(log, "ab") as file:
        done = subprocess.run(command, stdin=stdin, stdout=file, stderr=file, env=environment)
    if done.returncode == 0 or done.returncode in STOP_CODES:
        log.unlink(missing_ok=True)
        return STOPPED if done.returncode else None
    lines = log.read_text(errors="replace").strip().splitlines() or ["no message"]
    return f"exit code {done.returncode}: {lines[-1][:300]}"
