"""The folder of one run: configuration, environment, checkpoints, logs and weights."""

import csv
import json
import math
import re
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from scae import config, files
from scae.config import Experiment
from scae.errors import ScaeError
from scae.training import environment

CONFIG = "config.json"
ENVIRONMENT = "environment.json"
CHECKPOINTS = "checkpoints"
LOGS = "logs"
WEIGHTS = "weights.safetensors"
# Fields that change no weight, so a resumed training may have others.
FREE_ON_RESUME = ("log_every", "diagnose_every", "checkpoint_every", "keep")
CHECKPOINT_KEYS = {"state_dict", "optimizer_states", "lr_schedulers", "loops", "scae"}


def start_run(folder: Path, experiment: Experiment) -> None:
    """Make the folder of a new run, or refuse one that holds a run already."""
    if (folder / CONFIG).exists():
        raise ScaeError(
            f"{folder} already holds a run; continue it with --resume or choose another folder."
        )
    _write(folder, experiment, environment.describe() | {"resumed": []})


def resume_run(folder: Path, experiment: Experiment, fingerprint: str) -> Path | None:
    """The checkpoint to continue from, or None to start at step 0.

    A changed configuration and other data are refused.
    """
    if not (folder / CONFIG).exists():
        warnings.warn(f"Nothing to resume in {folder}: starting from step 0.", stacklevel=2)
        start_run(folder, experiment)
        return None
    old = _read_experiment(folder)
    free: dict[str, Any] = {name: getattr(experiment.training, name) for name in FREE_ON_RESUME}
    same = replace(old, training=replace(old.training, **free))
    if changes := config.differences(same, experiment):
        raise ScaeError(
            f"{folder} holds a run with another configuration ({'; '.join(changes)}); resume "
            "with the same one or use a new folder."
        )
    checkpoint = newest_checkpoint(folder)
    if checkpoint is not None and checkpoint[1]["fingerprint"] != fingerprint:
        raise ScaeError(
            f"The data differ from those that the run in {folder} was started with; resume "
            "with the same data or use a new folder."
        )
    past = _read_environment(folder)
    now = environment.describe()
    _write(folder, experiment, (past or now) | {"resumed": [*past.get("resumed", []), now]})
    return None if checkpoint is None else checkpoint[0]


def finish_run(folder: Path, seconds: float) -> None:
    """Add what the training took to the folder's environment."""
    took = {"hours": round(seconds / 3600, 4), "peak_memory_mb": environment.peak_memory_mb()}
    files.write_json(folder / ENVIRONMENT, _read_environment(folder) | took)


def checkpoint_path(folder: Path, step: int) -> Path:
    """The checkpoint after `step` updates in a folder of checkpoints."""
    return folder / f"step{step:09d}.ckpt"


def checkpoint_paths(folder: Path) -> list[Path]:
    """Checkpoints in a folder of checkpoints, oldest first."""
    return sorted(p for p in folder.glob("step*.ckpt") if re.fullmatch(r"step\d+\.ckpt", p.name))


def newest_checkpoint(run: Path) -> tuple[Path, dict[str, Any]] | None:
    """The newest readable checkpoint of a run and our record in it.

    Newer ones that cannot be read are removed with a warning.
    """
    for path in reversed(checkpoint_paths(run / CHECKPOINTS)):
        record = _read_record(path)
        if record is not None:
            return path, record
        warnings.warn(
            f"The checkpoint {path} is corrupt; falling back to the one before.", stacklevel=3
        )
        path.unlink(missing_ok=True)
    return None


def read_metrics(folder: Path | str) -> dict[str, list[float]]:
    """Everything logged in a run by column, one row per step; NaN where nothing was logged.

    A resumed training logs into a new `logs/version_N`; where two have a step, the later counts.
    `step` counts updates from 0, as Lightning does.
    """
    rows: dict[int, dict[str, float]] = {}
    for path in sorted(Path(folder).glob(f"{LOGS}/version_*/metrics.csv"), key=_version):
        try:
            with open(path, newline="", encoding="utf-8") as file:
                for cells in csv.DictReader(file):
                    _add_row(rows, cells)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise ScaeError(f"{path} cannot be read ({error}).") from None
    if not rows:
        raise ScaeError(f"{folder} holds no metrics; expected the folder of a training.")
    steps = sorted(rows)
    names = sorted({name for row in rows.values() for name in row})
    columns = {name: [rows[step].get(name, math.nan) for step in steps] for name in names}
    return {"step": [float(step) for step in steps], **columns}


def _add_row(rows: dict[int, dict[str, float]], cells: dict[str, str]) -> None:
    """Add a row of the file; one that a kill cut short is left out."""
    try:
        step = int(cells["step"])
        values = {name: float(cell) for name, cell in cells.items() if cell and name != "step"}
    except (KeyError, ValueError, TypeError):
        return
    rows.setdefault(step, {}).update(values)


def _version(path: Path) -> int:
    digits = path.parent.name.removeprefix("version_")
    return int(digits) if digits.isascii() and digits.isdigit() else -1


def _read_record(path: Path) -> dict[str, Any] | None:
    """Our record in a checkpoint, or None if the file is corrupt; nothing in it is executed."""
    try:
        with zipfile.ZipFile(path) as archive:  # torch.load compares no checksums
            if archive.testzip() is not None:
                return None
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        record: dict[str, Any] = checkpoint["scae"]
        return record if checkpoint.keys() >= CHECKPOINT_KEYS and "fingerprint" in record else None
    except Exception:  # a corrupt file can raise anything
        return None


def _read_experiment(folder: Path) -> Experiment:
    path = folder / CONFIG
    try:
        return config.from_json(path.read_bytes(), str(path))
    except OSError as error:
        raise ScaeError(f"{path} cannot be read ({error.strerror}).") from None


def _read_environment(folder: Path) -> dict[str, Any]:
    try:
        value = json.loads((folder / ENVIRONMENT).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) and isinstance(value.get("resumed"), list) else {}


def _write(folder: Path, experiment: Experiment, made_with: dict[str, Any]) -> None:
    try:
        (folder / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
        for place in (folder, folder / CHECKPOINTS):
            files.remove_partial(place)
        files.write_json(folder / ENVIRONMENT, made_with)
        files.write_json(folder / CONFIG, config.to_json(experiment))
    except OSError as error:
        raise ScaeError(
            f"{folder} cannot be written to ({error.strerror}); free some space on the disk or "
            "choose another folder."
        ) from None
