"""Poses fitted to points: against complex least squares, and what they must not depend on."""

import math
from dataclasses import replace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scae.pose_fitting import NARROWEST, cost_of_poses, fit_poses

from scae import pose_fitting
from scae.geometry import compose, similarity, transform_points
from scae.losses import points_won
from scae.mixtures import DUMMY_LOG_DENSITY, DUMMY_LOG_WEIGHT
from scae.models.object_decoder import PoseVotes

SQUARE = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])


def votes_at(points: torch.Tensor, presence: torch.Tensor | None = None) -> PoseVotes:
    """Votes for points (B, K, N, 2); each object's own frame is the scene's."""
    batch, objects, parts, _ = points.shape
    eye = torch.eye(2).to(points).expand(batch, objects, parts, 2, 2)
    pose = torch.cat([eye, points[..., None]], -1)
    if presence is None:
        presence = points.new_ones(batch, objects, parts)
    still = torch.cat([torch.eye(2), torch.zeros(2, 1)], 1).to(points)
    return PoseVotes(
        presence=presence,
        scale=points.new_full((batch, objects, parts), 0.2),
        object_logit=points.new_zeros(batch, objects),
        part_logit=points.new_zeros(batch, objects, parts),
        deformation=points.new_zeros(()),
        pose=pose,
        object_pose=still.expand(batch, objects, 2, 3),
        relation=pose,
        features=points.new_zeros(batch, objects, 3),
    )


def random_case(seed: int) -> tuple[torch.Tensor, torch.Tensor, PoseVotes]:
    draw = torch.Generator().manual_seed(seed)
    options = {"generator": draw, "dtype": torch.float64}
    points = 2 * torch.rand(3, 9, 2, **options) - 1
    there = (torch.rand(3, 9, **options) < 0.8).double()
    guess = 2 * torch.rand(3, 2, 4, 2, **options) - 1
    return points, there, votes_at(guess, torch.rand(3, 2, 4, **options))


def by_loops(points: np.ndarray, there: np.ndarray, votes: PoseVotes, scene: int) -> np.ndarray:
    """The same for one scene in complex numbers, one object at a time."""
    x = points[scene, :, 0] + 1j * points[scene, :, 1]
    t = votes.points[scene].numpy().astype(float)
    t = t[..., 0] + 1j * t[..., 1]  # (K, N)
    weight = votes.presence[scene].numpy()
    for number in range(pose_fitting.ROUNDS):
        width = 0.15 * (1 / 3) ** (number / 4)
        density = weight[None] * np.exp(-(np.abs(x[:, None, None] - t[None]) ** 2) / 2 / width**2)
        density = density / (2 * math.pi * width**2)
        dummy = math.exp(DUMMY_LOG_WEIGHT + DUMMY_LOG_DENSITY)
        share = density / (density.sum((1, 2), keepdims=True) + dummy)
        share = share * there[scene][:, None, None]
        for k in range(len(t)):
            own, s = t[k].mean(), share[:, k]  # (P, N)
            total = s.sum() + 1e-3
            there_ = ((s * x[:, None]).sum() + 1e-3 * own) / total
            here = ((s * t[k][None]).sum() + 1e-3 * own) / total
            cross = (s * (x[:, None] - there_) * (t[k] - here).conj()[None]).sum()
            size = (s * np.abs(t[k] - here)[None] ** 2).sum()
            a = (cross + 0.0025) / (size + 0.0025)
            t[k] = a * (t[k] - here) + there_
    return np.stack([t.real, t.imag], -1)


def test_fitted_votes_are_those_of_loops() -> None:
    points, there, votes = random_case(0)
    fitted = fit_poses(points, there, votes, dummy=True)
    for scene in range(len(points)):
        expected = by_loops(points.numpy(), there.numpy(), votes, scene)
        torch.testing.assert_close(fitted.points[scene], torch.from_numpy(expected))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(-180, 180), st.floats(-0.5, 0.5))
def test_a_turned_scene_is_fitted_turned(seed: int, degrees: float, shift: float) -> None:
    points, there, votes = random_case(seed)
    view = similarity(1.0, degrees, (shift, -shift)).double()
    fitted = fit_poses(points, there, votes, dummy=True)
    turned = replace(
        votes, pose=compose(view, votes.pose), object_pose=compose(view, votes.object_pose)
    )
    again = fit_poses(transform_points(view, points), there, turned, dummy=True)
    # The view itself is made in single precision.
    close = {"atol": 1e-5, "rtol": 1e-5}
    torch.testing.assert_close(again.pose, compose(view, fitted.pose), **close)
    torch.testing.assert_close(again.object_pose, compose(view, fitted.object_pose), **close)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.85, 1.15), st.floats(-15, 15), st.floats(-0.06, 0.06), st.floats(-0.06, 0.06))
def test_a_guess_that_misses_a_little_is_put_right(
    size: float, degrees: float, right: float, down: float
) -> None:
    truth = transform_points(similarity(0.4, 30.0, (0.2, -0.1)), SQUARE)
    guess = transform_points(similarity(size, degrees, (right, down)), truth)
    fitted = fit_poses(truth[None], torch.ones(1, 4), votes_at(guess[None, None]), dummy=True)
    torch.testing.assert_close(fitted.points[0, 0], truth, atol=0.01, rtol=0)
    # The pose of the object moves with its votes.
    back = compose(fitted.object_pose[:, :, None], fitted.relation)
    torch.testing.assert_close(back, fitted.pose)
    assert (fitted.scale == NARROWEST).all()


def test_objects_without_points_stay_and_absent_points_do_not_count() -> None:
    near, far = 0.3 * SQUARE - 0.5, 0.1 * SQUARE + 0.8
    votes = votes_at(torch.stack([near + 0.03, far])[None])
    points = torch.cat([near, far + 0.05])[None]
    there = torch.tensor([[1.0] * 4 + [0.0] * 4])
    fitted = fit_poses(points, there, votes, dummy=True)
    torch.testing.assert_close(fitted.points[0, 0], near, atol=0.01, rtol=0)
    torch.testing.assert_close(fitted.points[0, 1], far, atol=1e-4, rtol=0)


def test_every_object_that_wins_a_point_costs_its_pose() -> None:
    there = torch.tensor([[1.0] * 8, [1.0] * 4 + [0.0] * 4, [0.0] * 8])
    winner = torch.tensor([[0, 0, 0, 0, 2, 2, 2, 2], [1, 1, 1, 1, 0, 0, 2, 2], [0] * 8])
    wins = points_won(torch.zeros(3, 3), winner, there)
    assert wins.tolist() == [[4, 0, 4], [0, 4, 0], [0, 0, 0]]
    expected = torch.tensor([2 * 2 * math.log(8), 2 * math.log(4), 0.0])
    torch.testing.assert_close(cost_of_poses(wins, there), expected)
