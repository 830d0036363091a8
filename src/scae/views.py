"""One scene seen in several ways: turned and mirrored within the square it lies in.

An encoder that has to say where every object is, and how far it is turned, misses in some
scenes and not in the same scenes turned. The likelihood tells which explanation is better, so
explaining a scene in several views and keeping the likeliest is a search by the model's own
measure; labels have no part in it.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

MOST_VIEWS = 8


def symmetries(count: int) -> Float[Tensor, "count 2 2"]:
    """The first `count` maps of [-1, 1]^2 onto itself: quarter turns, then mirrored ones."""
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    mirror = torch.tensor([[-1.0, 0.0], [0.0, 1.0]])
    turns = [torch.linalg.matrix_power(turn, quarters) for quarters in range(4)]
    return torch.stack(turns + [mirror @ turned for turned in turns])[:count]


def turn_points(
    points: Float[Tensor, "*batch 2"], view: Float[Tensor, "2 2"]
) -> Float[Tensor, "*batch 2"]:
    """Points as the view shows them."""
    return points @ view.mT


def turn_poses(
    pose: Float[Tensor, "*batch 2 3"], view: Float[Tensor, "2 2"]
) -> Float[Tensor, "*batch 2 3"]:
    """Poses as the view shows them: what the pose puts somewhere, the view turns."""
    return view @ pose


def choose(
    better: Bool[Tensor, "batch"],
    one: Float[Tensor, "batch *rest"],
    other: Float[Tensor, "batch *rest"],
) -> Float[Tensor, "batch *rest"]:
    """Rows of `one` where it is better, else of `other`."""
    return torch.where(better.reshape(-1, *[1] * (one.dim() - 1)), one, other)
