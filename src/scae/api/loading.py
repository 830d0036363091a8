"""Trained models by name or path: shipped weights, run folders and weights files."""

import warnings
from functools import cache
from importlib.resources import files
from pathlib import Path

import torch

from scae.api.images import ImageCapsules
from scae.api.points import PointCapsules
from scae.config import Experiment
from scae.errors import ScaeError, did_you_mean
from scae.models import CapsuleModel, ConstellationAutoencoder, build
from scae.weights_file import load_weights

WEIGHTS = "weights.safetensors"
# The layout of the Hugging Face Hub, see `scae.hub`.
HUB_WEIGHTS, HUB_CONFIG = "model.safetensors", "config.json"

Capsules = ImageCapsules | PointCapsules


@cache
def shipped() -> dict[str, Path]:
    """Folders of the models that come with the package, by name."""
    root = Path(str(files("scae"))) / "weights"
    return {path.parent.name: path.parent for path in sorted(root.glob(f"*/{WEIGHTS}"))}


def load(name_or_path: str | Path, device: str = "cpu") -> Capsules:
    """A trained model to ask: `ImageCapsules`, or `PointCapsules` for constellations.

    It is the name of a shipped model (``scae.load("mnist")``), a run folder or a
    weights file. A folder in the way of a name is reached as ``./mnist``.
    """
    path = _find_weights(name_or_path)
    experiment, state = load_weights(path)
    try:
        # A file may claim a model of any size: it is refused before memory is taken.
        with torch.device("meta"):
            model = build(experiment.model)
        with warnings.catch_warnings(action="ignore"):
            model.load_state_dict(state)  # compares names and shapes, copies nothing
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise ScaeError(
            f"The weights in {path} do not fit the model they describe ({reason}); "
            "download or copy it again."
        ) from None
    model.to_empty(device="cpu").load_state_dict(state)
    return wrap(model, experiment, device, path.parent)


def wrap(
    model: CapsuleModel, experiment: Experiment, device: str = "cpu", folder: Path | None = None
) -> Capsules:
    """The interface of `load` for a model that is already in memory."""
    kind = PointCapsules if isinstance(model, ConstellationAutoencoder) else ImageCapsules
    return kind(model.to(device).eval(), experiment, folder)


def _find_weights(name_or_path: str | Path) -> Path:
    """The weights file that a name, run folder or path stands for."""
    if isinstance(name_or_path, str) and name_or_path in shipped():
        return shipped()[name_or_path] / WEIGHTS
    path = Path(name_or_path)
    for candidate in (path, path / WEIGHTS, path / HUB_WEIGHTS):
        if candidate.is_file():
            return candidate
    if path.is_dir():
        raise ScaeError(
            f"Folder {path} holds no {WEIGHTS}; expected the folder of a finished run, "
            "made by `scae train`."
        )
    name, names = str(name_or_path), ", ".join(shipped()) or "none yet"
    raise ScaeError(
        f"There is no model {name!r}: expected a run folder, a weights file or the name of a "
        f"shipped model; {did_you_mean(name, shipped(), f'there are {names}.')}"
    )
