"""One scene seen in several ways: turned and mirrored within the square it lies in.

An encoder that has to say where every object is, and how far it is turned, misses in some
scenes and not in the same scenes turned. The likelihood tells which explanation is better, so
explaining a scene in several views and keeping the likeliest is a search by the model's own
measure; labels have no part in it.
"""

import math
from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from scae.geometry import transform_points

SYMMETRIES = 8
TURNS = (0, 4, 2, 6, 1, 5, 3, 7)
"""Sixteenths of a half turn before each symmetry; the widest gaps are halved first."""
MOST_VIEWS = SYMMETRIES * len(TURNS)
NARROWEST = 1e-12  # a range to divide by

Views = Float[Tensor, "batch 2 3"]


def symmetries() -> Float[Tensor, "8 2 2"]:
    """The maps of [-1, 1]^2 onto itself: quarter turns, then mirrored ones."""
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    mirror = torch.tensor([[-1.0, 0.0], [0.0, 1.0]])
    turns = [torch.linalg.matrix_power(turn, quarters) for quarters in range(4)]
    return torch.stack(turns + [mirror @ turned for turned in turns])


def views_of(
    points: Float[Tensor, "batch points 2"], presence: Float[Tensor, "batch points"], count: int
) -> Iterator[Views]:
    """Maps from each scene to `count` views of it, the scene itself first.

    The first eight are the symmetries of the square. The others are turned by less than a
    quarter before that, which may leave the square: those are put into its middle, smaller if
    they have to be. Never larger: there two votes for one point are worth more than one.
    """
    square = symmetries().to(points)
    for number in range(count):
        symmetry = square[number % SYMMETRIES]
        sixteenths = TURNS[number // SYMMETRIES]
        if not sixteenths:
            still = points.new_zeros(points.shape[0], 2, 1)
            yield torch.cat([symmetry.expand(points.shape[0], 2, 2), still], -1)
            continue
        angle = sixteenths * math.pi / 16
        cos, sin = math.cos(angle), math.sin(angle)
        turned = symmetry @ points.new_tensor([[cos, -sin], [sin, cos]])
        yield _inside(points, presence, turned)


def own_range(
    points: Float[Tensor, "batch points 2"], presence: Float[Tensor, "batch points"]
) -> Views:
    """Maps that put each scene's present points into [-1, 1]^2 by their own range.

    What `normalise` does to data with "scene"; points that all coincide go to the middle.
    """
    absent = (presence == 0)[..., None]
    low = points.masked_fill(absent, torch.inf).amin((1, 2))  # (B,)
    high = points.masked_fill(absent, -torch.inf).amax((1, 2))
    has_range = high > low
    size = torch.where(has_range, 2 / (high - low).clamp_min(NARROWEST), 1.0)
    corner = torch.where(has_range, -1 - size * low, -low.masked_fill(low > high, 0.0))
    turn = size[:, None, None] * torch.eye(2).to(points)  # (B, 2, 2)
    return torch.cat([turn, corner[:, None, None].expand(-1, 2, 1)], -1)


def seen_in(
    view: Views, points: Float[Tensor, "batch points 2"], presence: Float[Tensor, "batch points"]
) -> Float[Tensor, "batch points 2"]:
    """What a view shows; absent points are 0, as in data."""
    return transform_points(view, points) * presence[..., None]


def _inside(
    points: Float[Tensor, "batch points 2"],
    presence: Float[Tensor, "batch points"],
    turned: Float[Tensor, "2 2"],
) -> Views:
    """The turn, then whatever puts the present points into [-1, 1]^2, around its middle."""
    seen, absent = points @ turned.mT, (presence == 0)[..., None]
    low = seen.masked_fill(absent, torch.inf).amin(1)  # (B, 2)
    high = seen.masked_fill(absent, -torch.inf).amax(1)
    empty = (low > high).any(1)[:, None]
    middle = ((low + high) / 2).masked_fill(empty, 0)
    half = ((high - low) / 2).amax(1, keepdim=True).masked_fill(empty, 1).clamp_min(1)
    return torch.cat([turned / half[..., None], (-middle / half)[..., None]], -1)
