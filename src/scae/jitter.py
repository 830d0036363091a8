"""Images turned, scaled, sheared and shifted a little: what is in them stays what it is."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

MAX_ROTATION = math.radians(15)
MAX_SCALING = 0.15
MAX_SHEAR = 0.2
MAX_SHIFT = 1 / 7
"""In units of half the image: two pixels of 28."""


def jitter(
    image: Float[Tensor, "batch channels height width"], strength: float, draw: torch.Generator
) -> Float[Tensor, "batch channels height width"]:
    """Each image under a small random affine map of its own, black where it leaves the picture.

    `strength` is a factor on the largest rotation, scaling, shear and shift.
    """
    amount = strength * (2 * torch.rand(len(image), 5, generator=draw) - 1)
    angle, scaling, shear, right, down = amount.to(image).unbind(1)
    angle, scale = MAX_ROTATION * angle, 1 + MAX_SCALING * scaling
    cos, sin = angle.cos() / scale, angle.sin() / scale
    inverse = torch.stack(
        [
            torch.stack([cos, MAX_SHEAR * shear - sin, MAX_SHIFT * right], 1),
            torch.stack([sin, cos, MAX_SHIFT * down], 1),
        ],
        1,
    )  # (B, 2, 3), from places in the result to places in the image
    grid = F.affine_grid(inverse, list(image.shape), align_corners=False)
    return F.grid_sample(image, grid, align_corners=False)
