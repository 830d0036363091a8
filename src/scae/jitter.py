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


def draw_moves(count: int, strength: float, draw: torch.Generator) -> Float[Tensor, "count 5"]:
    """Rotation, scaling, shear and shift of each image, as shares of the largest.

    `strength` is a factor on all of them.
    """
    return strength * (2 * torch.rand(count, 5, generator=draw) - 1)


def move(
    image: Float[Tensor, "batch channels height width"], moves: Float[Tensor, "batch 5"]
) -> Float[Tensor, "batch channels height width"]:
    """Each image under an affine map of its own; mirrored where it leaves the picture."""
    angle, scaling, shear, right, down = moves.to(image).unbind(1)
    angle, scale = MAX_ROTATION * angle, 1 + MAX_SCALING * scaling
    cos, sin = angle.cos() / scale, angle.sin() / scale
    # Places run from -1 to 1 along either side, however long it is.
    wide, tall = image.shape[3] / image.shape[2], image.shape[2] / image.shape[3]
    inverse = torch.stack(
        [
            torch.stack([cos, tall * (MAX_SHEAR * shear - sin), MAX_SHIFT * right], 1),
            torch.stack([wide * sin, cos, MAX_SHIFT * down], 1),
        ],
        1,
    )  # (B, 2, 3), from places in the result to places in the image
    grid = F.affine_grid(inverse, list(image.shape), align_corners=False)
    return F.grid_sample(image, grid, padding_mode="reflection", align_corners=False)


def jitter(
    image: Float[Tensor, "batch channels height width"], strength: float, draw: torch.Generator
) -> Float[Tensor, "batch channels height width"]:
    """Each image moved at random."""
    return move(image, draw_moves(len(image), strength, draw))
