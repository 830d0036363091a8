"""The image log-likelihood and all its gradients in one fused CPU pass (see ``sweep``)."""

import logging
import time
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scae.kernels import BLOCKS, run_blocks
from scae.rendering import sweep
from scae.rendering.coverage import PAD

MIN_IMAGES = 8
"""Fewer images than this are not worth a thread."""
MAX_SPREAD = 60.0

Gradients = tuple[Tensor | None, ...]

logger = logging.getLogger(__name__)


def _padded(templates: np.ndarray, alpha: np.ndarray | None) -> np.ndarray:
    """(planes, parts, padded height, padded width): channels and, if learned, alpha."""
    parts, channels, height, width = templates.shape
    shape = (channels + (alpha is not None), parts, height + 2 * PAD, width + 2 * PAD)
    result = np.zeros(shape, templates.dtype)
    inside = result[:, :, PAD : PAD + height, PAD : PAD + width]
    inside[:channels] = templates.swapaxes(0, 1)
    if alpha is not None:
        inside[channels] = alpha
    return result


def _exponentials_are_safe(
    target: np.ndarray,
    templates: np.ndarray,
    colours: np.ndarray,
    alpha: np.ndarray | None,
    scalars: np.ndarray,
    printed: bool,
) -> tuple[bool, float]:
    """Whether exponentials are safe with one shift for the whole batch, and that shift.

    The background (or floor) is in every pixel, so no sum is smaller than its share; below
    exp(-60), together with weights down to 1e-16, float32 would come near its smallest number.
    """
    bg_value, bg_logit, precision, sharpness = scalars.tolist()
    low, high, weak, strong = (
        float(x) for x in (templates.min(), templates.max(), colours.min(), colours.max())
    )
    products = (0.0, bg_value, low * weak, low * strong, high * weak, high * strong)
    reach = max(float(target.max()) - min(products), max(products) - float(target.min()))
    shift = max(bg_logit, 0.0)
    if not printed:
        shift = max(shift, max(products) * sharpness if alpha is None else float(alpha.max()))
    return shift - bg_logit + 0.5 * precision * reach**2 < MAX_SPREAD, shift


def sweep_batch(
    printed: bool,
    with_gradients: bool,
    target: Float[Tensor, "batch channels height width"],
    pose: Float[Tensor, "batch parts 2 3"],
    presence: Float[Tensor, "batch parts"],
    templates: Float[Tensor, "parts channels template_height template_width"],
    colours: Float[Tensor, "batch parts channels"],
    alpha: Float[Tensor, "parts template_height template_width"] | None,
    scalars: Float[Tensor, "4"],
) -> tuple[Float[Tensor, " batch"], Gradients]:
    """Per-image log-likelihoods (float64) and the gradients of their sum.

    The gradients are those of the arguments from ``pose`` to ``scalars``; ``scalars`` are the
    background's value and logit, 1 / sigma^2 and 1 / temperature.
    """
    # numpy throughout: a parallel torch operation would leave its threads spinning for
    # milliseconds on the cores that the sweep is about to use.
    y, theta, d, T, c, s = (
        np.ascontiguousarray(x.detach().numpy())
        for x in (target, pose, presence, templates, colours, scalars)
    )
    a = None if alpha is None else alpha.detach().numpy()
    planes, tint = _padded(T, a), np.ascontiguousarray(c.swapaxes(1, 2))
    mild, shift = _exponentials_are_safe(y, T, c, a, s, printed)
    batch = len(y)
    value = np.empty(batch)
    g_pose, g_presence, g_tint = (np.empty_like(x) for x in (theta, d, tint))
    g_planes = np.zeros((BLOCKS, *planes.shape), planes.dtype)
    g_scalars = np.zeros((BLOCKS, len(s)))

    def block(n: int, first: int, last: int) -> None:
        sweep.render_images(
            first, last, y, theta, d, planes, tint, s, printed,
            a is None, mild, planes.dtype.type(shift), with_gradients, value, g_pose, g_presence,
            g_tint, g_planes[n], g_scalars[n],
        )  # fmt: skip

    run_blocks(block, batch, MIN_IMAGES)
    if not with_gradients:
        return torch.from_numpy(value), ()
    inside = g_planes.sum(0)[:, :, PAD:-PAD, PAD:-PAD]  # (planes, parts, height, width)
    channels = T.shape[1]
    g_alpha = None if a is None else torch.from_numpy(inside[channels])
    rest = (
        g_pose, g_presence, inside[:channels].swapaxes(0, 1), g_tint.swapaxes(1, 2),
        g_scalars.sum(0).astype(s.dtype),
    )  # fmt: skip
    to_pose, to_presence, to_templates, to_colours, to_scalars = map(torch.from_numpy, rest)
    gradients = (to_pose, to_presence, to_templates, to_colours, g_alpha, to_scalars)
    return torch.from_numpy(value), gradients


class MeanLogLikelihood(torch.autograd.Function):
    """Mean over the batch. The value is a scalar, so backward only scales stored gradients."""

    @staticmethod
    def forward(ctx: Any, printed: bool, target: Tensor, *inputs: Any) -> Tensor:
        value, gradients = sweep_batch(printed, True, target, *inputs)
        ctx.save_for_backward(*gradients)
        return value.mean().to(target.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> Gradients:
        scale = upstream / len(ctx.saved_tensors[0])
        return (None, None, *(None if g is None else g * scale for g in ctx.saved_tensors))


def warm_up() -> None:
    """Compile the kernel, or read it from numba's cache on disk, saying so in the log."""
    logger.info("Preparing the renderer; on first use this compiles for 10 to 20 seconds.")
    start = time.perf_counter()
    one = torch.ones(1, 1, 1)
    sweep_batch(
        False, True, torch.ones(1, 1, 2, 2), torch.eye(2, 3).expand(1, 1, 2, 3), one[0],
        torch.ones(1, 1, 2, 2), one, None, torch.ones(4),
    )  # fmt: skip
    logger.info("The renderer is ready after %.1f s.", time.perf_counter() - start)
