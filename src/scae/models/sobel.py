"""Sobel edges of images: the reconstruction target for SVHN and CIFAR-10 (appendix A.2)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

# Keeps constant images, whose range is 0, from dividing by zero.
RANGE_FLOOR = 1e-8


def sobel_edges(
    image: Float[Tensor, "batch channels height width"],
) -> Float[Tensor, "batch channels 2 height width"]:
    """Derivatives along y and x of each channel, borders reflected."""
    smooth, slope = image.new_tensor([1.0, 2.0, 1.0]), image.new_tensor([-1.0, 0.0, 1.0])
    kernels = torch.stack([torch.outer(slope, smooth), torch.outer(smooth, slope)])[:, None]
    planes = F.pad(image, (1, 1, 1, 1), mode="reflect").flatten(0, 1)[:, None]  # (B*C, 1, H, W)
    return F.conv2d(planes, kernels).unflatten(0, image.shape[:2])


def sobel_target(
    image: Float[Tensor, "batch channels height width"], subtract_median: bool = True
) -> Float[Tensor, "batch channels height width"]:
    """Four steps per channel: Sobel, minus the median, absolute value, scaled to [0, 1].

    As released, the two derivatives are summed, and the median is the nearest order statistic
    from above: of equal values the first in reading order, which is the one with a gradient.
    """
    edges = sobel_edges(image).sum(2).flatten(2)  # (B, C, H*W)
    if subtract_median:
        middle = round((edges.shape[-1] - 1) / 2)
        order = edges.detach().sort(dim=-1, descending=True, stable=True).indices
        edges = (edges - edges.gather(-1, order[..., middle : middle + 1])).abs()
    low, high = edges.amin(-1, keepdim=True), edges.amax(-1, keepdim=True)
    return ((edges - low) / (high - low + RANGE_FLOOR)).view_as(image)
