"""Stacked Capsule Autoencoders: parts of images and objects of parts, without labels.

The public names below are loaded when first used, so that ``import scae`` and the command
line start without importing torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOMES = {
    "load": "scae.api",
    "preset": "scae.presets",
    "train": "scae.training",
    "CapsuleClusterer": "scae.estimator",
    "ConstellationSegmenter": "scae.estimator",
    "ScaeError": "scae.errors",
}

__all__ = [
    "load",
    "preset",
    "train",
    "CapsuleClusterer",
    "ConstellationSegmenter",
    "ScaeError",
    "__version__",
]

if TYPE_CHECKING:
    from scae.api import load
    from scae.errors import ScaeError
    from scae.estimator import CapsuleClusterer, ConstellationSegmenter
    from scae.presets import preset
    from scae.training.train import train


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'scae' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
