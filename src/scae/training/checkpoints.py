"""Checkpoints that are whole or refused, with the one before to fall back to."""

import contextlib
import hashlib
import json
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from scae import files, weights_file
from scae.errors import ScaeError

_NAME = re.compile(r"step(\d{9})\.safetensors")


@dataclass(frozen=True)
class Checkpoint:
    """Everything a training needs to go on after `step` updates."""

    step: int
    tensors: dict[str, Tensor]
    record: dict[str, Any]
    """Counters and other JSON values."""


class CheckpointStore:
    """The checkpoints of a run: atomic, checksummed safetensors files, the newest `keep` kept."""

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder = folder
        self.keep = max(1, keep)

    def save(self, checkpoint: Checkpoint) -> bool:
        """Write a checkpoint; on a full disk warn, keep the older ones and return False."""
        tensors = weights_file.separate(checkpoint.tensors)
        body = {"step": checkpoint.step, "record": checkpoint.record}
        text = json.dumps(body | {"sha256": _digest(tensors, body)}, allow_nan=False)
        data = safetensors.torch.save(tensors, {weights_file.METADATA_KEY: text})
        path = self.folder / f"step{checkpoint.step:09d}.safetensors"
        try:
            files.write_bytes(path, data)
        except OSError as error:
            warnings.warn(
                f"The checkpoint of step {checkpoint.step} could not be written "
                f"({error.strerror or error}); training goes on and the checkpoints before it "
                f"stay. Free some space in {self.folder}.",
                stacklevel=2,
            )
            return False
        for old in self.paths()[: -self.keep]:
            with contextlib.suppress(OSError):
                old.unlink(missing_ok=True)
        return True

    def paths(self) -> list[Path]:
        """Checkpoint files, oldest first."""
        try:
            names = sorted(p for p in self.folder.iterdir() if _NAME.fullmatch(p.name))
        except OSError:
            return []
        return names

    def latest(self) -> Checkpoint | None:
        """The newest undamaged checkpoint; says so when it is not the newest file."""
        damaged: list[str] = []
        for path in reversed(self.paths()):
            try:
                checkpoint = read_checkpoint(path)
            except ScaeError as error:
                damaged.append(str(error))
                continue
            if damaged:
                warnings.warn(
                    f"{' '.join(damaged)} Falling back to the checkpoint of step "
                    f"{checkpoint.step}.",
                    stacklevel=2,
                )
            return checkpoint
        if damaged:
            warnings.warn(
                f"{' '.join(damaged)} No earlier checkpoint is left: starting from step 0.",
                stacklevel=2,
            )
        return None

    def discard_after(self, step: int) -> None:
        """Remove checkpoints of a future that a roll-back or a damaged file has cancelled."""
        for path in self.paths():
            match = _NAME.fullmatch(path.name)
            if match and int(match[1]) > step:
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint and compare its checksum; nothing in the file is executed."""
    tensors, text = weights_file.read(path)
    try:
        body = json.loads(text)
        expected = body.pop("sha256")
        step, record = body["step"], body["record"]
        whole = expected == _digest(tensors, {"step": step, "record": record})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise ScaeError(f"The checkpoint {path} is damaged (its checksum differs).")
    return Checkpoint(step, tensors, record)


def _digest(tensors: dict[str, Tensor], body: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
