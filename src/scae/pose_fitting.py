"""Poses of objects fitted to the points that they explain.

An encoder says where an object is, but not to the last digit, and a vote that misses its point a
little leaves it to whoever else is near. For votes as they are, the pose that fits best is known:
expectation maximisation on the mixture of eq. 5 shares points out among votes, then moves, turns
and scales each object to where its points are. No label is used.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from scae.geometry import compose
from scae.mixtures import explain_points
from scae.objects import PoseVotes

ROUNDS = 5
WIDEST, NARROWEST = 0.15, 0.05
"""Deviations of votes in the first and last round: first reach points, then choose among them."""
PARAMETERS = 4
"""Of a similarity: place, angle and size."""
FAINT = 1e-3  # share of a point below which an object stays where it is


def fit_poses(
    points: Float[Tensor, "batch points 2"],
    presence: Float[Tensor, "batch points"],
    votes: PoseVotes,
    dummy: bool,
) -> PoseVotes:
    """The same objects where their points are, with votes as sure as `NARROWEST`."""
    where, object_pose = votes.pose, votes.object_pose
    for number in range(ROUNDS):
        width = WIDEST * (NARROWEST / WIDEST) ** (number / (ROUNDS - 1))
        target = where[..., 2]  # (B, K, N, 2)
        share = explain_points(
            points,
            target.flatten(1, 2),
            torch.full_like(votes.scale, width).flatten(1, 2),
            votes.presence.flatten(1, 2),
            dummy,
        ).responsibility.unflatten(-1, votes.scale.shape[1:])  # (B, P, K, N)
        step = _nearest(points, target, share * presence[:, :, None, None])  # (B, K, 2, 3)
        where, object_pose = compose(step[:, :, None], where), compose(step, object_pose)
    sure = torch.full_like(votes.scale, NARROWEST)
    return replace(votes, scale=sure, pose=where, object_pose=object_pose)


def cost_of_poses(
    wins: Float[Tensor, "batch objects"], presence: Float[Tensor, "batch points"]
) -> Float[Tensor, "batch"]:
    """What the poses of the objects that win points cost, by Schwarz's criterion (1978).

    Two votes fit any two points, so the likelihood alone of fitted poses prefers many objects.
    """
    points = presence.sum(1).clamp_min(1)
    return PARAMETERS / 2 * points.log() * (wins > 0).sum(1)


def _nearest(
    points: Float[Tensor, "batch points 2"],
    votes: Float[Tensor, "batch objects parts 2"],
    share: Float[Tensor, "batch points objects parts"],
) -> Float[Tensor, "batch objects 2 3"]:
    """The similarity for each object that takes its votes nearest to their points.

    Weighted least squares in closed form, drawn a little towards no move at all.
    """
    own = votes.mean(2)  # (B, K, 2)
    weight = share.sum((1, 3))[..., None] + FAINT  # (B, K, 1)
    there = (torch.einsum("bpkn,bpd->bkd", share, points) + FAINT * own) / weight
    here = (torch.einsum("bpkn,bknd->bkd", share, votes) + FAINT * own) / weight
    away = points[:, :, None] - there[:, None]  # (B, P, K, 2)
    arm = votes - here[:, :, None]  # (B, K, N, 2)
    across = torch.stack([-arm[..., 1], arm[..., 0]], -1)
    calm = NARROWEST**2
    size = torch.einsum("bpkn,bkn->bk", share, arm.square().sum(-1)) + calm
    cos = (torch.einsum("bpkn,bpkd,bknd->bk", share, away, arm) + calm) / size
    sin = torch.einsum("bpkn,bpkd,bknd->bk", share, away, across) / size
    turn = torch.stack([cos, -sin, sin, cos], -1).unflatten(-1, (2, 2))  # (B, K, 2, 2)
    shift = there - (turn @ here[..., None])[..., 0]
    return torch.cat([turn, shift[..., None]], -1)
