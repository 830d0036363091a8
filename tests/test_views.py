"""Scenes explained in several views: which view is kept, and that places come back unturned."""

import pytest
import torch
from scae.pose_fitting import fit_poses
from scae.views import MOST_VIEWS, SYMMETRIES, own_range, symmetries, views_of
from torch import Tensor

from scae.data.points import normalise
from scae.errors import ScaeError
from scae.geometry import transform_points
from scae.mixtures import Explanation, explain_points
from scae.models import constellation
from scae.models.constellation import _log_likelihood, _worth, put_back, scenes_at_once
from scae.models.object_decoder import PointVotes, PoseVotes
from small_models import point_capsules


def _scenes(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(20, 7, 2, generator=generator) * 2 - 1
    presence = (torch.rand(20, 7, generator=generator) < 0.7).float()
    return points, presence


def _explained(
    points: Tensor,
    votes: PoseVotes | PointVotes,
    dummy: bool,
    where: Tensor | None = None,
    scale: Tensor | None = None,
) -> Explanation:
    """Points under votes, or under other places and deviations of them."""
    return explain_points(
        points,
        votes.points.flatten(1, 2) if where is None else where,
        votes.scale.flatten(1, 2) if scale is None else scale,
        votes.presence.flatten(1, 2),
        dummy,
    )


def test_symmetries_are_the_group_of_the_square() -> None:
    views = symmetries()
    assert torch.equal(views[0], torch.eye(2))
    assert len({tuple(view.flatten().tolist()) for view in views}) == 8
    known = {tuple(view.flatten().tolist()) for view in views}
    for one in views:
        torch.testing.assert_close(one @ one.mT, torch.eye(2))
        assert all(tuple((one @ two).flatten().tolist()) in known for two in views)


def test_the_first_view_is_the_scene_and_the_next_seven_its_symmetries() -> None:
    points, presence = _scenes()
    for view, symmetry in zip(views_of(points, presence, SYMMETRIES), symmetries(), strict=True):
        assert torch.equal(view[:, :, :2], symmetry.expand(20, 2, 2))
        assert not view[:, :, 2].any()


def test_other_views_are_put_into_the_square_and_never_enlarged() -> None:
    points, presence = _scenes()
    presence[0] = 0  # nothing there to put anywhere
    points[1] *= 0.1
    points[2, :4] = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    presence[2] = 1
    turns = []
    for view in list(views_of(points, presence, MOST_VIEWS))[SYMMETRIES:]:
        assert torch.isfinite(view).all()
        seen = transform_points(view, points)
        size = view[:, 0, :2].norm(dim=-1)
        assert size[0] == pytest.approx(1) and size[1] == pytest.approx(1)
        for scene in range(1, len(points)):
            present = seen[scene][presence[scene] > 0]
            low, high = present.amin(0), present.amax(0)
            torch.testing.assert_close(low + high, torch.zeros(2), atol=1e-5, rtol=0)
            # As large as it was, or filling the square.
            assert present.abs().max() <= 1 + 1e-5 and size[scene] <= 1 + 1e-5
            assert max(present.abs().max(), size[scene]) == pytest.approx(1, abs=1e-5)
            turn = view[scene, :, :2] / size[scene]
            torch.testing.assert_close(turn @ turn.mT, torch.eye(2), atol=1e-5, rtol=0)
        turns.append(tuple((view[1, :, :2]).flatten().tolist()))
        assert size[2] < 0.9
    assert len(set(turns)) == MOST_VIEWS - SYMMETRIES


@pytest.mark.parametrize("decoder", ["capsules", "baseline"])
@pytest.mark.parametrize("views", [1, 3, 8, 20])
def test_the_likeliest_view_is_kept(decoder: str, views: int) -> None:
    model = point_capsules(decoder=decoder, views=views).model.eval()
    points, presence = _scenes()
    kept = model.explain(points, presence)
    fits, winners = [], []
    for view in views_of(points, presence, views):
        cast = model.explain_once(transform_points(view, points), presence).votes
        votes = put_back(cast, view)
        # As seen, in the units of the view: densities there are larger where it is smaller.
        size = view[:, 0, :2].norm(dim=-1)[:, None, None]
        torch.testing.assert_close(
            _explained(points, votes, model.config.dummy).log_likelihood,
            _explained(
                transform_points(view, points) / size,
                votes,
                model.config.dummy,
                cast.points.flatten(1, 2) / size,
                cast.scale.flatten(1, 2) / size[..., 0],
            ).log_likelihood,
        )
        cost = torch.zeros(len(points))
        if isinstance(votes, PoseVotes) and views > 1:
            votes = fit_poses(points, presence, votes, model.config.dummy)
        seen = _explained(points, votes, model.config.dummy)
        winner = seen.winner // votes.presence.shape[2]
        if isinstance(votes, PoseVotes) and views > 1:
            used = [set(w[p > 0].tolist()) for w, p in zip(winner, presence, strict=True)]
            there = presence.sum(1).clamp_min(1)
            cost = 2 * there.log() * torch.tensor([len(objects) for objects in used])
        fits.append((seen.log_likelihood * presence).sum(1) - cost)
        winners.append(winner)
    best = torch.stack(fits).max(0)
    worth = _log_likelihood(kept, presence) if views == 1 else _worth(kept, presence)
    torch.testing.assert_close(worth, best.values)
    # Which of two equally good views is kept is a matter of rounding.
    ahead = torch.stack(fits).sort(0).values.diff(dim=0)[-1:].sum(0) > 1e-4
    expected = torch.stack(winners)[best.indices, torch.arange(len(points))]
    assert views == 1 or ahead.sum() >= len(points) / 2
    assert torch.equal(kept.winner[ahead | (views == 1)], expected[ahead | (views == 1)])


@pytest.mark.parametrize("decoder", ["capsules", "baseline"])
def test_votes_come_back_unturned(decoder: str) -> None:
    """Scored again where they are said to be, votes explain the points as well as was said."""
    model = point_capsules(decoder=decoder, views=32).model.eval()
    points, presence = _scenes()
    kept = model.explain(points, presence)
    votes = kept.votes
    assert isinstance(votes, PoseVotes | PointVotes)
    again = _explained(points, votes, model.config.dummy)
    torch.testing.assert_close(again.log_likelihood, kept.mixture.log_likelihood)
    torch.testing.assert_close(again.responsibility, kept.mixture.responsibility)
    once = model.explain_once(points, presence).mixture.log_likelihood
    assert ((once * presence).sum(1) < (again.log_likelihood * presence).sum(1) - 1e-3).any()


@pytest.mark.parametrize("views", [8, 16, 64])
def test_segments_do_not_depend_on_quarter_turns(views: int) -> None:
    # In double precision: rounding decides between views that are almost as good.
    model = point_capsules(views=views).model.eval().double()
    points, presence = (x.double() for x in _scenes())
    presence[:, :3] = 1  # two points around the middle look the same after half a turn
    expected = model.segment(points, presence)
    turned = [points @ symmetry.mT.double() for symmetry in symmetries()]
    for scenes in turned:
        assert torch.equal(model.segment(scenes, presence), expected)
    alone = [model.segment(scenes, presence, views=1) for scenes in turned]
    assert any(not torch.equal(alone[0], other) for other in alone[1:])


def test_one_view_is_the_papers_way_to_the_last_bit() -> None:
    model = point_capsules(views=1).model.eval()
    points, presence = _scenes()
    one, once = model.explain(points, presence), model.explain_once(points, presence)
    assert torch.equal(one.mixture.joint, once.mixture.joint)
    assert isinstance(one.votes, PoseVotes) and isinstance(once.votes, PoseVotes)
    assert torch.equal(one.votes.pose, once.votes.pose)


def test_training_sees_one_view() -> None:
    points, presence = _scenes()
    one, eight = (point_capsules(views=views).model.eval() for views in (1, 8))
    torch.testing.assert_close(
        one.loss_terms(points, presence).named(), eight.loss_terms(points, presence).named()
    )


def test_numbers_of_views_that_do_not_exist_are_refused() -> None:
    points, presence = _scenes()
    capsules = point_capsules()
    for views in (0, MOST_VIEWS + 1):
        with pytest.raises(ScaeError, match=r"`views` must be a whole number from 1 to 64, got"):
            capsules.segment(points.numpy(), presence.numpy(), views=views)
        with pytest.raises(ScaeError, match=r"views"):
            point_capsules(views=views)


def test_a_scene_is_seen_by_its_own_range_as_data_are_normalised() -> None:
    points, presence = _scenes()
    presence[0] = 0  # nobody there
    presence[1, 1:], points[1, 0] = 0, torch.tensor([0.3, 0.3])  # no range
    presence[1, 0] = 1
    presence[2, 1:], presence[2, 0] = 0, 1  # one point
    points = 0.2 * points + 0.5
    seen = transform_points(own_range(points, presence), points) * presence[..., None]
    torch.testing.assert_close(seen, normalise(points, presence, "scene"))
    square = normalise(points, presence, "scene")
    still = torch.eye(2, 3).expand(17, 2, 3)
    torch.testing.assert_close(own_range(square, presence)[3:], still)


def test_many_points_are_explained_few_at_a_time(monkeypatch) -> None:
    """Attention takes memory for every pair: 32 views of 3 000 points would take gigabytes."""
    assert scenes_at_once(11) == constellation.MOST_SCENES
    assert scenes_at_once(3000) == 1 and scenes_at_once(0) == constellation.MOST_SCENES
    model = point_capsules()
    points, presence = _scenes()
    whole = model.segment(points, presence, views=8)
    sizes = []
    encoder = model.model.encoder
    encoder.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    monkeypatch.setattr(constellation, "MOST_PAIRS", 3 * 7**2)
    assert torch.equal(model.segment(points, presence, views=8), whole)
    assert max(sizes) == 3
