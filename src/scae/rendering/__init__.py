"""Templates on images, eq. 7 to 10: one definition (``plain``), one fast CPU path (``fused``).

The fused path is taken by itself on CPU in float32 where numba is installed; everything else,
GPUs, other types, ``torch.compile`` and second derivatives, runs the plain definition.
"""

import math
from collections.abc import Iterable
from functools import cache
from types import ModuleType

import torch
from jaxtyping import Float
from torch import Tensor

from scae.config import Form
from scae.rendering import plain
from scae.rendering.plain import FLOOR, Background, PixelMixture, render

__all__ = [
    "Background",
    "PixelMixture",
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
    target: Tensor,
    pose: Tensor,
    presence: Tensor,
    templates: Tensor,
    colours: Tensor | None,
    alpha: Tensor | None,
    background: Background | None,
    temperature: Tensor | None,
    sigma: float | Tensor,
    form: Form,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None, Tensor] | None:
    """Arguments of the fused path, or None where the plain one has to do it."""
    plain.check_form(alpha, background, temperature, form)
    if _fused() is None:
        return None
    one = pose.new_ones(())
    sigma = one * sigma
    if background is not None:
        value, logit = background[0], plain.background_logit(background, temperature)
    else:
        value, logit = pose.new_zeros(()), pose.new_full((), math.log(FLOOR))
    sharpness = one if temperature is None else temperature.reciprocal()
    if colours is None:
        colours = pose.new_ones(*presence.shape, templates.shape[1])
    tensors = [pose, presence, templates, colours, value, logit, sigma, sharpness]
    if not _fits(target, tensors if alpha is None else [*tensors, alpha]):
        return None
    scalars = torch.stack([value, logit, sigma.pow(-2), sharpness])
    return target, pose, presence, templates, colours, alpha, scalars


def image_log_likelihood(
    target: Float[Tensor, "batch channels height width"],
    pose: Float[Tensor, "batch parts 2 3"],
    presence: Float[Tensor, "batch parts"],
    templates: Float[Tensor, "parts channels template_height template_width"],
    colours: Float[Tensor, "batch parts channels"] | None,
    alpha: Float[Tensor, "parts template_height template_width"] | None,
    background: Background | None,
    temperature: Float[Tensor, ""] | None,
    sigma: float | Float[Tensor, ""],
    form: Form,
) -> Float[Tensor, " batch"]:
    """Log-likelihood of each image, eq. 10; fused where no gradient is asked for."""
    arguments = (
        pose, presence, templates, colours, alpha, background, temperature, sigma, form
    )  # fmt: skip
    inputs = _fused_inputs(target, *arguments)
    fused = _fused()
    if fused is None or inputs is None or _needs_gradient(inputs):
        return plain.image_log_likelihood(target, *arguments)
    fused.warm_up()
    value, _ = fused.sweep_batch(*inputs, form == "printed", False)
    return value.to(target.dtype)


def mean_image_log_likelihood(
    target: Float[Tensor, "batch channels height width"],
    pose: Float[Tensor, "batch parts 2 3"],
    presence: Float[Tensor, "batch parts"],
    templates: Float[Tensor, "parts channels template_height template_width"],
    colours: Float[Tensor, "batch parts channels"] | None,
    alpha: Float[Tensor, "parts template_height template_width"] | None,
    background: Background | None,
    temperature: Float[Tensor, ""] | None,
    sigma: float | Float[Tensor, ""],
    form: Form,
) -> Float[Tensor, ""]:
    """Mean of ``image_log_likelihood`` over the batch: what training maximises.

    On the fused path the forward pass computes the value and every gradient.
    """
    arguments = (
        pose, presence, templates, colours, alpha, background, temperature, sigma, form
    )  # fmt: skip
    inputs = _fused_inputs(target, *arguments)
    fused = _fused()
    if fused is None or inputs is None:
        return plain.image_log_likelihood(target, *arguments).mean()
    fused.warm_up()
    if _needs_gradient(inputs):
        return fused.MeanLogLikelihood.apply(*inputs, form == "printed")
    value, _ = fused.sweep_batch(*inputs, form == "printed", False)
    return value.mean().to(target.dtype)


def _needs_gradient(inputs: Iterable[Tensor | None]) -> bool:
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
