"""Train and score one cell of a table: `python -m scae.reproduce.cell TABLE/runs/NAME.json`.

Training continues where it was interrupted, and the result is written last, so a cell with a
result is finished.
"""

import json
import os
import shutil
import signal
import sys
import threading
from pathlib import Path

from scae import config, files
from scae.errors import ScaeError
from scae.evaluation import evaluate
from scae.training import train
from scae.training.run_folder import environment, peak_memory_mb


def result_path(spec_file: Path) -> Path:
    """Where the result of a cell is written."""
    return spec_file.parents[1] / "cells" / spec_file.name


def run(spec_file: Path) -> None:
    """Train in `runs/NAME`, score, write `cells/NAME.json` and remove the run."""
    spec = json.loads(spec_file.read_bytes())
    experiment = config.from_json(json.dumps(spec["experiment"]), str(spec_file))
    data_dir = None if spec["data_dir"] is None else Path(spec["data_dir"])
    folder, result = spec_file.with_suffix(""), result_path(spec_file)
    resume = any((folder / "checkpoints").glob("*"))
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)
    trained = train(
        experiment, folder, data_dir=data_dir, resume=resume, loggers=[], progress=False
    )
    scores = {}
    for dataset in spec["scored_on"]:
        found = evaluate(trained.model, experiment, dataset, data_dir, limit=spec["limit"])
        scores[dataset or spec["dataset"]] = found.to_dict()
        scores[dataset or spec["dataset"]].pop("confusion", None)
    result.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(
        result,
        {key: spec[key] for key in ("target", "row", "dataset", "seed", "experiment")}
        | {"steps": trained.steps, "hours": round(trained.seconds / 3600, 4)}
        | {"peak_memory_mb": peak_memory_mb()}
        | {"environment": environment(), "scores": scores},
    )
    shutil.rmtree(folder, ignore_errors=True)
    spec_file.unlink(missing_ok=True)


def _end_with_parent() -> None:
    """Save and stop when the process at the other end of standard input is gone."""

    def watch() -> None:
        os.read(0, 1)  # returns at the end of the pipe; sys.stdin would block the exit
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    _end_with_parent()
    try:
        run(Path(sys.argv[1]))
    except ScaeError as error:
        sys.exit(f"scae: {error}")
