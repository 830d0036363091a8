"""Which numbers of a configuration can be a model at all, said by the name of the option."""

from collections.abc import Mapping
from typing import Any

from scae.config import ConstellationConfig, ModelConfig, SetTransformerConfig, StackedConfig
from scae.errors import ScaeError
from scae.views import MOST_VIEWS

# A configuration may come with weights from a stranger: sizes beyond these are no models.
LARGEST_SIZE = 1 << 20
MOST_LAYERS = 1000
SMALLEST_SIGMA, LARGEST_SIGMA = 2e-4, 500.0

_SHARED = {"objects": 1, "classes": 1, "capsule_hidden": 1, "capsule_params": 1}
_STACKED = {"channels": 1, "parts": 1, "template_size": 1, "special_features": 0}
_TRANSFORMER = {"heads": 1, "width": 1, "output": 1, "inducing_points": 0}


def check(config: ModelConfig) -> None:
    """Refuse sizes that are not positive, not of one piece or absurd."""
    _sizes(config, _SHARED)
    _transformer(config.set_transformer)
    if not config.noise.amplitude >= 0:
        raise _error("noise.amplitude", config.noise.amplitude, "0 or more")
    if isinstance(config, ConstellationConfig):
        _sizes(config, {"votes": 1})
        if config.min_scale is not None and not SMALLEST_SIGMA <= config.min_scale <= LARGEST_SIGMA:
            raise _error("min_scale", config.min_scale, f"{SMALLEST_SIGMA} to {LARGEST_SIGMA:g}")
        if not 1 <= config.views <= MOST_VIEWS:
            raise _error("views", config.views, f"1 to {MOST_VIEWS}")
    else:
        _sizes(config, _STACKED)
        _images(config)


def _images(config: StackedConfig) -> None:
    for name in ("image_size", "cnn_channels", "cnn_strides", "object_mlp"):
        sizes = getattr(config, name)
        if not all(1 <= size <= LARGEST_SIZE for size in sizes):
            raise _error(name, sizes, f"numbers from 1 to {LARGEST_SIZE}")
    if not config.cnn_channels or len(config.cnn_channels) != len(config.cnn_strides):
        raise ScaeError(
            f"model.cnn_channels {config.cnn_channels} and model.cnn_strides "
            f"{config.cnn_strides} need one number for each convolution."
        )
    if not SMALLEST_SIGMA <= config.sigma <= LARGEST_SIGMA:
        raise _error("sigma", config.sigma, f"{SMALLEST_SIGMA} to {LARGEST_SIGMA:g}")


def _transformer(config: SetTransformerConfig) -> None:
    _sizes(config, _TRANSFORMER, "set_transformer.")
    if not 0 <= config.layers <= MOST_LAYERS:
        raise _error("set_transformer.layers", config.layers, f"0 to {MOST_LAYERS}")


def _sizes(config: object, smallest: Mapping[str, int], prefix: str = "") -> None:
    for name, least in smallest.items():
        size = getattr(config, name)
        if not least <= size <= LARGEST_SIZE:
            raise _error(prefix + name, size, f"{least} to {LARGEST_SIZE}")


def _error(name: str, value: Any, expected: str) -> ScaeError:
    return ScaeError(f"model.{name} is {value}; give {expected}.")
