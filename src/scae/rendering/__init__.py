"""Templates on images, eq. 7 to 10: one definition (``plain``), one fast CPU path (``fused``).

The fused path is taken by itself on CPU in float32; everything else, i.e. GPUs, other types and
``torch.compile``, runs the plain definition.
"""

from functools import cache
from types import ModuleType

import torch
from jaxtyping import Float
from torch import Tensor

from scae.rendering import plain
from scae.rendering.plain import PixelMixture, Scene, render

__all__ = ["PixelMixture", "Scene", "image_log_likelihood", "mean_image_log_likelihood", "render"]


@cache
def _fused() -> ModuleType:
    """The fused path, got ready when first needed: numba takes a second to load."""
    from scae.rendering import fused

    fused.warm_up()
    return fused


def _fused_inputs(target: Tensor, scene: Scene) -> tuple[Tensor | None, ...] | None:
    """Arguments of the fused path after the target; None where the plain one has to do it."""
    scalars = [*scene.last_component, scene.sigma.pow(-2), scene.temperature.reciprocal()]
    inputs = (
        scene.pose, scene.presence, scene.templates, scene.colours, scene.alpha,
        torch.stack(scalars),
    )  # fmt: skip
    tensors = [x for x in (target, *inputs) if x is not None]
    fits = (
        all(x.device.type == "cpu" and x.dtype == torch.float32 for x in tensors)
        and not target.requires_grad
        and len(target) > 0
        and not torch.compiler.is_compiling()
    )
    return inputs if fits else None


def _needs_gradient(inputs: tuple[Tensor | None, ...]) -> bool:
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)


def image_log_likelihood(
    target: Float[Tensor, "batch channels height width"], scene: Scene
) -> Float[Tensor, " batch"]:
    """Log-likelihood of each image, eq. 10; fused where no gradient is asked for."""
    inputs = _fused_inputs(target, scene)
    if inputs is None or _needs_gradient(inputs):
        return plain.image_log_likelihood(target, scene)
    value: Tensor = _fused().sweep_batch(scene.background is None, False, target, *inputs)[0]
    return value.to(target.dtype)


def mean_image_log_likelihood(
    target: Float[Tensor, "batch channels height width"], scene: Scene
) -> Float[Tensor, ""]:
    """Mean of ``image_log_likelihood`` over the batch: what training maximises.

    On the fused path the forward pass computes the value and every gradient.
    """
    inputs = _fused_inputs(target, scene)
    if inputs is None or not _needs_gradient(inputs):
        return image_log_likelihood(target, scene).mean()
    mean: Tensor = _fused().MeanLogLikelihood.apply(scene.background is None, target, *inputs)
    return mean
