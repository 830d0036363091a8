"""Scenes explained in several views: which view is kept, and that places come back unturned."""

import pytest
import torch
from torch import Tensor

from scae.errors import ScaeError
from scae.mixtures import explain_points
from scae.objects import PointVotes, PoseVotes
from scae.views import MOST_VIEWS, symmetries, turn_points
from small_models import point_capsules


def _scenes(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(20, 7, 2, generator=generator) * 2 - 1
    presence = (torch.rand(20, 7, generator=generator) < 0.7).float()
    return points, presence


def test_symmetries_are_the_group_of_the_square() -> None:
    views = symmetries(MOST_VIEWS)
    assert torch.equal(views[0], torch.eye(2))
    assert len({tuple(view.flatten().tolist()) for view in views}) == 8
    known = {tuple(view.flatten().tolist()) for view in views}
    for one in views:
        torch.testing.assert_close(one @ one.mT, torch.eye(2))
        assert all(tuple((one @ two).flatten().tolist()) in known for two in views)


@pytest.mark.parametrize("decoder", ["capsules", "baseline"])
@pytest.mark.parametrize("views", [1, 3, 8])
def test_the_likeliest_view_is_kept(decoder: str, views: int) -> None:
    model = point_capsules(decoder=decoder, views=views).model.eval()
    points, presence = _scenes()
    kept = model.explain(points, presence)
    for scene in range(len(points)):
        best, winner = -torch.inf, None
        for view in symmetries(views):
            turned = model.explain_once(
                turn_points(points[scene][None], view), presence[scene][None]
            )
            fit = (turned.mixture.log_likelihood[0] * presence[scene]).sum().item()
            if fit > best:
                best, winner = fit, turned.winner[0]
        assert best == pytest.approx(
            float((kept.mixture.log_likelihood[scene] * presence[scene]).sum()), abs=1e-4
        )
        assert torch.equal(kept.winner[scene], winner)


@pytest.mark.parametrize("decoder", ["capsules", "baseline"])
def test_votes_come_back_unturned(decoder: str) -> None:
    """Scored again where they are said to be, votes explain the points as well as was said."""
    model = point_capsules(decoder=decoder, views=8).model.eval()
    points, presence = _scenes()
    kept = model.explain(points, presence)
    votes = kept.votes
    assert isinstance(votes, PoseVotes | PointVotes)
    again = explain_points(
        points,
        votes.points.flatten(1, 2),
        votes.scale.flatten(1, 2),
        votes.presence.flatten(1, 2),
        model.config.dummy,
    )
    torch.testing.assert_close(again.log_likelihood, kept.mixture.log_likelihood)
    torch.testing.assert_close(again.responsibility, kept.mixture.responsibility)
    once = model.explain_once(points, presence).mixture.log_likelihood
    assert ((once * presence).sum(1) < (again.log_likelihood * presence).sum(1) - 1e-3).any()


def test_all_eight_views_make_segments_independent_of_the_view() -> None:
    model = point_capsules(views=8).model.eval()
    points, presence = _scenes()
    expected = model.segment(points, presence)
    for view in symmetries(MOST_VIEWS):
        assert torch.equal(model.segment(turn_points(points, view), presence), expected)
    alone = [model.segment(turn_points(points, view), presence, views=1) for view in symmetries(8)]
    assert any(not torch.equal(alone[0], other) for other in alone[1:])


def test_training_sees_one_view() -> None:
    points, presence = _scenes()
    one, eight = (point_capsules(views=views).model.eval() for views in (1, 8))
    torch.testing.assert_close(
        one.loss_terms(points, presence).named(), eight.loss_terms(points, presence).named()
    )


def test_numbers_of_views_that_do_not_exist_are_refused() -> None:
    points, presence = _scenes()
    capsules = point_capsules()
    for views in (0, 9):
        with pytest.raises(ScaeError, match=r"`views` must be a number from 1 to 8, got"):
            capsules.segment(points.numpy(), presence.numpy(), views=views)
        with pytest.raises(ScaeError, match=r"views"):
            point_capsules(views=views)
