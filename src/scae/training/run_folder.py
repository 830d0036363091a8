"""The folder of one run: configuration, environment, checkpoints, logs and weights."""

import contextlib
import csv
import json
import math
import os
import platform
import re
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.utilities.rank_zero import rank_zero_only

import scae
from scae import config, files
from scae.config import Experiment
from scae.errors import ScaeError

CONFIG = "config.json"
ENVIRONMENT = "environment.json"
CHECKPOINTS = "checkpoints"
LOGS = "logs"
WEIGHTS = "weights.safetensors"
# Fields that change no weight, so a resumed training may have others.
FREE_ON_RESUME = ("log_every", "diagnose_every", "checkpoint_every", "keep")
CHECKPOINT_KEYS = {"state_dict", "optimizer_states", "lr_schedulers", "loops", "skipped_steps"}
PACKAGES = ("torch", "lightning", "numpy", "scipy", "scikit-learn", "safetensors")


def open_run(folder: Path, experiment: Experiment, fingerprint: str, resume: bool) -> Path | None:
    """Make the folder of a new run, or find the checkpoint to continue from.

    A folder that holds a run already is refused without `resume`; a changed configuration and
    other data with it. Only the main process writes.
    """
    if getattr(rank_zero_only, "rank", 0) not in (0, None):
        return newest_checkpoint(folder) if resume else None
    if not (folder / CONFIG).exists():
        if resume:
            warnings.warn(f"Nothing to resume in {folder}: starting from step 0.", stacklevel=2)
        _write(folder, experiment, environment() | {"data": fingerprint, "resumed": []})
        return None
    if not resume:
        raise ScaeError(
            f"{folder} already holds a run; continue it with --resume or choose another folder."
        )
    old = config.from_json((folder / CONFIG).read_bytes(), str(folder / CONFIG))
    free: dict[str, Any] = {name: getattr(experiment.training, name) for name in FREE_ON_RESUME}
    same = replace(old, training=replace(old.training, **free))
    if changes := config.differences(same, experiment):
        raise ScaeError(
            f"{folder} holds a run with another configuration ({'; '.join(changes)}); resume "
            "with the same one or use a new folder."
        )
    past = _read_environment(folder)
    if past.get("data", fingerprint) != fingerprint:
        raise ScaeError(
            f"The data differ from those that the run in {folder} was started with; resume "
            "with the same data or use a new folder."
        )
    _write(folder, experiment, past | {"resumed": [*past.get("resumed", []), environment()]})
    return newest_checkpoint(folder)


def finish_run(folder: Path, seconds: float) -> None:
    """Add what the training took to the folder's environment."""
    took = {"hours": round(seconds / 3600, 4), "peak_memory_mb": peak_memory_mb()}
    files.write_json(folder / ENVIRONMENT, _read_environment(folder) | took)


def checkpoint_path(folder: Path, step: int) -> Path:
    """The checkpoint after `step` updates in a folder of checkpoints."""
    return folder / f"step{step:09d}.ckpt"


def checkpoint_paths(folder: Path) -> list[Path]:
    """Checkpoints in a folder of checkpoints, oldest first."""
    return sorted(folder.glob("step*.ckpt"))


def newest_checkpoint(run: Path) -> Path | None:
    """The newest readable checkpoint of a run; newer ones are removed with a warning."""
    for path in reversed(checkpoint_paths(run / CHECKPOINTS)):
        if _is_readable(path):
            return path
        warnings.warn(
            f"The checkpoint {path} is corrupt; falling back to the one before.", stacklevel=3
        )
        path.unlink(missing_ok=True)
    return None


def _is_readable(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:  # torch.load compares no checksums
            if archive.testzip() is not None:
                return False
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)  # executes nothing
        return bool(checkpoint.keys() >= CHECKPOINT_KEYS)
    except Exception:  # a corrupt file can raise anything
        return False


def read_metrics(folder: Path | str) -> dict[str, list[float]]:
    """Everything logged in a run by column, one row per step; NaN where nothing was logged.

    A resumed training logs into a new `logs/version_N`; where two have a step, the later counts.
    `step` counts updates from 0, as Lightning does.
    """
    rows: dict[int, dict[str, float]] = {}
    paths = Path(folder).glob(f"{LOGS}/version_*/metrics.csv")
    for path in sorted(paths, key=lambda path: (len(path.parent.name), path.parent.name)):
        with open(path, newline="", encoding="utf-8", errors="replace") as file:
            for cells in csv.DictReader(file):
                # A kill may have cut a row short.
                with contextlib.suppress(KeyError, ValueError, TypeError):
                    step = int(cells.pop("step"))
                    values = {name: float(cell) for name, cell in cells.items() if cell}
                    rows.setdefault(step, {}).update(values)
    if not rows:
        raise ScaeError(f"{folder} holds no metrics; expected the folder of a training.")
    steps = sorted(rows)
    names = sorted({name for row in rows.values() for name in row})
    columns = {name: [rows[step].get(name, math.nan) for step in steps] for name in names}
    return {"step": [float(step) for step in steps], **columns}


def environment() -> dict[str, Any]:
    """Versions, machine and commit. No host or user names: run folders get published."""
    versions = {package: metadata.version(package) for package in PACKAGES}
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"scae": scae.__version__, "python": platform.python_version(), **versions},
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count(),
            "torch_threads": torch.get_num_threads(),
            "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        },
        "commit": _commit(),
    }


def peak_memory_mb() -> int | None:
    """Most memory that this process has held; None on Windows, which does not tell."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(errors="replace") if cpuinfo.exists() else ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return named[1] if named else platform.processor() or "unknown"


def _commit() -> str | None:
    """Commit of the source tree, `+` when it has uncommitted changes; None when installed."""
    folder = Path(scae.__file__).parents[2]
    if not (folder / ".git").exists():
        return None
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=40", "--dirty=+"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _read_environment(folder: Path) -> dict[str, Any]:
    try:
        value = json.loads((folder / ENVIRONMENT).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) and isinstance(value.get("resumed"), list) else {}


def _write(folder: Path, experiment: Experiment, made_with: dict[str, Any]) -> None:
    with disk_problems(folder):
        (folder / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
        for place in (folder, folder / CHECKPOINTS):
            files.remove_partial(place)
        files.write_json(folder / ENVIRONMENT, made_with)
        files.write_json(folder / CONFIG, config.to_json(experiment))


@contextlib.contextmanager
def disk_problems(folder: Path) -> Iterator[None]:
    """One sentence for a full or vanished disk."""
    try:
        yield
    except OSError as error:
        raise ScaeError(
            f"{error.filename or folder} cannot be written ({error.strerror or error}); free some "
            "space on the disk or choose another folder; checkpoints continue with --resume."
        ) from error
