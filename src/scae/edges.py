"""Edges of images: the reconstruction target for SVHN and CIFAR-10 (appendix A.2), histograms."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

# Keeps constant images, whose range is 0, from dividing by zero.
RANGE_FLOOR = 1e-8
DIRECTIONS = 9
NEIGHBOURHOOD = 8
"""Pixels on a side of 32 or fewer; neighbours overlap by half."""
FAINTEST = 1e-3  # an image without edges has histograms of zeros


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


def edge_histograms(
    image: Float[Tensor, "batch channels height width"],
) -> Float[Tensor, "batch values"]:
    """How strong edges of each direction are in each neighbourhood (Dalal and Triggs 2005).

    Light on dark is the same as dark on light; each image's histograms have the same size, so
    that neither its contrast nor its brightness counts. The root makes weak edges count more.
    """
    grey = F.pad(image.mean(1, keepdim=True), (1, 1, 1, 1), mode="replicate")
    right = grey[..., 1:-1, 2:] - grey[..., 1:-1, :-2]
    down = grey[..., 2:, 1:-1] - grey[..., :-2, 1:-1]
    strength = (right.square() + down.square()).sqrt()  # (B, 1, H, W)
    angle = torch.atan2(down, right).remainder(math.pi) * (DIRECTIONS / math.pi)
    lower = angle.floor()
    upper_share = angle - lower
    histogram = grey.new_zeros(len(image), DIRECTIONS, *image.shape[2:])
    lower_bin = lower.long() % DIRECTIONS
    histogram.scatter_add_(1, lower_bin, strength * (1 - upper_share))
    histogram.scatter_add_(1, (lower_bin + 1) % DIRECTIONS, strength * upper_share)
    shorter = min(image.shape[2:])
    side = min(max(NEIGHBOURHOOD, shorter // 4), shorter)  # large images have no more values
    local = F.avg_pool2d(histogram, side, max(1, side // 2)).flatten(1)
    return (local / (local.norm(dim=1, keepdim=True) + FAINTEST)).sqrt()
