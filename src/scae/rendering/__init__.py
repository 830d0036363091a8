"""Templates on images, eq. 7 to 10: one definition (``plain``), one fast CPU path (``fused``).

The fused path is taken by itself on CPU in float32 where numba is installed; everything else,
GPUs, other types, ``torch.compile`` and second derivatives, runs the plain definition.
"""

import math
from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from scae.rendering import plain
from scae.rendering.plain import FLOOR, Background, PixelMixture, Scene, render

__all__ = [
    "Background",
    "PixelMixture",
    "Scene",
    "image_log_likelihood",
    "mean_image_log_likelihood",
    "render",
    "warm_up",
]


@cache
def _fused() -> ModuleType | None:
    """The fused path, imported when first needed: numba takes a second to load."""
    try:
        from scae.rendering import fused
    except ImportError:
        return None
    return fused


def warm_up() -> None:
    """Get the compiled kernel ready now, saying so in the log, instead of in the first step."""
    fused = _fused()
    if fused is not None:
        fused.warm_up()


def _fits(target: Tensor, inputs: Iterable[Tensor]) -> bool:
    """Whether the fused path can compute this."""
    return (
        all(x.device.type == "cpu" and x.dtype == torch.float32 for x in (target, *inputs))
        and not target.requires_grad
        and len(target) > 0
        and min(target.shape[2:]) > 1
        and not torch.compiler.is_compiling()
    )


def _fused_inputs(
    target: Tensor, scene: Scene
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None, Tensor] | None:
    """Arguments of the fused path, or None where the plain one has to do it."""
    alpha, background, temperature = scene["alpha"], scene["background"], scene["temperature"]
    plain.check_form(alpha, background, temperature, scene["form"])
    if _fused() is None:
        return None
    pose, presence, templates = scene["pose"], scene["presence"], scene["templates"]
    one = pose.new_ones(())
    if background is not None:
        value, logit = background[0], plain.background_logit(background, temperature)
    else:
        value, logit = pose.new_zeros(()), pose.new_full((), math.log(FLOOR))
    sharpness = one if temperature is None else temperature.reciprocal()
    colours = scene["colours"]
    if colours is None:
        colours = pose.new_ones(*presence.shape, templates.shape[1])
    scalars = value, logit, one * scene["sigma"], sharpness
    tensors = [pose, presence, templates, colours, *scalars]
    if not _fits(target, tensors if alpha is None else [*tensors, alpha]):
        return None
    value, logit, sigma, sharpness = scalars
    stacked = torch.stack([value, logit, sigma.pow(-2), sharpness])
    return target, pose, presence, templates, colours, alpha, stacked


def image_log_likelihood(
    target: Float[Tensor, "batch channels height width"], **scene: Unpack[Scene]
) -> Float[Tensor, " batch"]:
    """Log-likelihood of each image, eq. 10; fused where no gradient is asked for."""
    inputs, fused = _fused_inputs(target, scene), _fused()
    if fused is None or inputs is None or _needs_gradient(inputs):
        return plain.image_log_likelihood(target, **scene)
    fused.warm_up()
    value, _ = fused.sweep_batch(*inputs, scene["form"] == "printed", False)
    return value.to(target.dtype)


def mean_image_log_likelihood(
    target: Float[Tensor, "batch channels height width"], **scene: Unpack[Scene]
) -> Float[Tensor, ""]:
    """Mean of ``image_log_likelihood`` over the batch: what training maximises.

    On the fused path the forward pass computes the value and every gradient.
    """
    inputs, fused = _fused_inputs(target, scene), _fused()
    if fused is None or inputs is None or not _needs_gradient(inputs):
        return image_log_likelihood(target, **scene).mean()
    fused.warm_up()
    return fused.MeanLogLikelihood.apply(*inputs, scene["form"] == "printed")


def _needs_gradient(inputs: Iterable[Tensor | None]) -> bool:
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
