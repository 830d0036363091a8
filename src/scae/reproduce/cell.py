"""Train and score one cell of a table: `python -m scae.reproduce.cell TABLE_FOLDER CELL`.

Training continues where it was interrupted, and the result is written last, so a cell with a
result is finished.
"""

import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any, cast

from scae import files
from scae.errors import ScaeError
from scae.evaluation import evaluate
from scae.reproduce.plan import Settings, Target, plan
from scae.training import train
from scae.training.run_folder import environment, peak_memory_mb


def run(table: Path, name: str) -> None:
    """Train in `runs/NAME` of the table's folder, score, write `cells/NAME.json`."""
    cells = {cell.name: cell for cell in plan(cast(Target, table.name), Settings.read(table))}
    cell, folder = cells[name], table / "runs" / name
    resume = any((folder / "checkpoints").glob("*"))
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)
    trained = train(cell.experiment, folder, resume=resume, loggers=[], progress=False)
    scores = {}
    for dataset in cell.scored_on:
        found = evaluate(trained.model, cell.experiment, dataset, limit=cell.limit)
        found.pop("confusion", None)
        scores[dataset or cell.dataset] = found
    took: dict[str, Any] = {"steps": trained.steps, "hours": round(trained.seconds / 3600, 4)}
    took |= {"peak_memory_mb": peak_memory_mb(), "environment": environment()}
    result = cell.place() | took | {"scores": scores}
    files.write_json(table / "cells" / f"{name}.json", result)
    shutil.rmtree(folder, ignore_errors=True)


def _end_with_parent() -> None:
    """Save and stop when the process at the other end of standard input is gone."""

    def watch() -> None:
        os.read(0, 1)  # returns at the end of the pipe; sys.stdin would block the exit
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    _end_with_parent()
    try:
        run(Path(sys.argv[1]), sys.argv[2])
    except ScaeError as error:
        sys.exit(f"scae: {error}")
