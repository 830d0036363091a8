"""Trained weights and the experiment they belong to, in one safetensors file."""

import json
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from scae import config, files
from scae.config import Experiment
from scae.errors import ScaeError

METADATA_KEY = "scae"


def save_weights(model: nn.Module, experiment: Experiment, path: Path) -> None:
    """Write a model's weights with its experiment, so that the file alone can be loaded."""
    write_state(model.state_dict(), experiment, path)


def write_state(state: dict[str, Tensor], experiment: Experiment, path: Path) -> None:
    """`save_weights` for a state dict; the same state gives the same bytes."""
    metadata = {METADATA_KEY: json.dumps(config.to_json(experiment), allow_nan=False)}
    # Safetensors stores no two tensors that share memory.
    separate = {name: x.detach().cpu().clone().contiguous() for name, x in state.items()}
    files.write_bytes(path, safetensors.torch.save(separate, metadata))


def load_weights(path: Path) -> tuple[Experiment, dict[str, Tensor]]:
    """The experiment and state dict of a weights file; nothing in it is executed."""
    tensors, metadata = _read(path)
    if METADATA_KEY not in metadata:
        raise ScaeError(
            f"{path} is a safetensors file without scae's metadata; "
            "expected one that `scae train` wrote."
        )
    return config.from_json(metadata[METADATA_KEY], str(path)), tensors


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of any safetensors file."""
    return _read(path)[0]


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except (SafetensorError, OSError, ValueError, TypeError, RuntimeError, MemoryError) as error:
        reason = " ".join(str(error).split())[:160]  # some errors repeat the whole header
        raise ScaeError(
            f"{path} is not a readable safetensors file ({reason}); use an undamaged copy."
        ) from None
