"""Small affine maps of images, against maps made one by one, and groups steady under them."""

import math
from dataclasses import replace

import pytest
import torch
from scipy.ndimage import affine_transform

from scae.arrangements import Arrangements
from scae.config import LossWeights
from scae.data.interface import ImageSource
from scae.errors import ScaeError
from scae.jitter import MAX_ROTATION, MAX_SCALING, MAX_SHEAR, MAX_SHIFT, jitter
from scae.models import build
from scae.parts import PartCapsules
from scae.training import steady_groups
from scae.training.guidance import check_guidance, find_groups, groups_from
from scae.training.steady_groups import SteadyGroups, fit_steady_groups, part_values
from training_runs import guided_experiment, image_data


def images(count: int = 5, side: int = 12) -> torch.Tensor:
    return torch.rand(count, 1, side, side, generator=torch.Generator().manual_seed(0))


def test_every_image_moves_by_the_map_it_drew() -> None:
    image = images()
    moved = jitter(image, 0.7, torch.Generator().manual_seed(3))
    draws = 0.7 * (2 * torch.rand(5, 5, generator=torch.Generator().manual_seed(3)) - 1)
    centre = 11 / 2
    for picture, result, draw in zip(image, moved, draws.tolist(), strict=True):
        angle, scale = MAX_ROTATION * draw[0], 1 + MAX_SCALING * draw[1]
        cos, sin = math.cos(angle) / scale, math.sin(angle) / scale
        # Rows first: scipy's maps act on (y, x), ours on (x, y).
        rows = [[cos, sin], [MAX_SHEAR * draw[2] - sin, cos]]
        shift = [6 * MAX_SHIFT * draw[4], 6 * MAX_SHIFT * draw[3]]
        offset = [centre + s - centre * sum(r) for s, r in zip(shift, rows, strict=True)]
        expected = affine_transform(
            picture[0].double().numpy(), rows, offset, order=1, mode="grid-constant"
        )
        torch.testing.assert_close(
            result[0].double(), torch.from_numpy(expected), atol=1e-5, rtol=0
        )


def test_without_strength_nothing_moves() -> None:
    torch.testing.assert_close(jitter(images(), 0.0, torch.Generator()), images())


def two_clouds(moves: int = 5, images: int = 1000, seed: int = 0):
    """Two kinds of images that the first value tells apart, moved in the second."""
    draw = torch.Generator().manual_seed(seed)
    label = torch.arange(images) % 2
    still = torch.randn(images, 2, generator=draw) * torch.tensor([0.3, 1.0])
    still[:, 0] += 2.0 * label - 1
    shift = torch.randn(moves, images, generator=draw) * 2
    moved = still.repeat(moves, 1, 1)
    moved[..., 1] += shift
    return torch.cat([still[None], moved]), label


def accuracy(steady: SteadyGroups, values: torch.Tensor, label: torch.Tensor) -> float:
    with torch.no_grad():
        return float((steady(values).argmax(1) == label).float().mean())


def test_groups_wrong_in_what_moves_are_put_right() -> None:
    views, label = two_clouds()
    # Wrong where an image happens to be far off in the direction in which it can move.
    wrong = torch.where(views[0, :, 1] > 1, 1 - label, label)
    given = torch.nn.functional.one_hot(wrong, 2).float()
    assert 0.75 < float((wrong == label).float().mean()) < 0.9
    fresh, truth = two_clouds(seed=1)
    assert accuracy(fit_steady_groups(views, given), fresh[0], truth) > 0.97
    # Without moves nothing says that this border is arbitrary.
    still = views[:1].expand_as(views)
    assert accuracy(fit_steady_groups(still, given), fresh[0], truth) < 0.93


def test_the_same_seed_finds_the_same_groups_and_leaves_the_generator_alone() -> None:
    views, label = two_clouds(images=40)
    given = torch.nn.functional.one_hot(label, 2).float()
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first, second = (fit_steady_groups(views, given, seed=2).tensors() for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(first[name], second[name]) for name in first)
    other = fit_steady_groups(views, given, seed=3).tensors()
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_groups_of_parts_are_probabilities_and_survive_a_checkpoint() -> None:
    draw = torch.Generator().manual_seed(0)
    parts = PartCapsules(
        pose=torch.randn(6, 3, 2, 3, generator=draw),
        presence=torch.rand(6, 3, generator=draw),
        logit=torch.zeros(6, 3),
        features=torch.randn(6, 3, 2, generator=draw),
    )
    values = part_values(parts)
    assert values.shape == (6, 3 * (6 + 1 + 2))
    assert torch.equal(values.view(6, 3, 9)[:, :, 6], parts.presence)
    steady = fit_steady_groups(values[None], torch.full((6, 4), 0.25))
    groups = steady.groups_of(parts)
    torch.testing.assert_close(groups.sum(1), torch.ones(6))
    again = groups_from(dict(steady.tensors()))
    assert isinstance(again, SteadyGroups)
    assert torch.equal(again.groups_of(parts), groups)
    assert not any(p.requires_grad for p in again.parameters())


def test_jitter_decides_which_groups_guide(monkeypatch) -> None:
    monkeypatch.setattr(steady_groups, "ROUNDS", 2)
    experiment = guided_experiment()
    torch.manual_seed(0)
    model, source = build(experiment.model), ImageSource(image_data(), seed=0)
    assert experiment.training.jitter
    steady = find_groups(model, experiment, source)
    assert isinstance(steady, SteadyGroups) and model.training
    plain = replace(experiment, training=replace(experiment.training, jitter=0.0))
    assert isinstance(find_groups(model, plain, source), Arrangements) and model.training


@pytest.mark.parametrize("strength", [-1.0, 6.0, float("nan")])
def test_a_jitter_out_of_range_is_refused(strength: float) -> None:
    guided = guided_experiment(jitter=strength)
    with pytest.raises(ScaeError, match=r"training\.jitter is .* 0 to 5"):
        check_guidance(guided)


def test_jitter_without_guidance_is_refused() -> None:
    with pytest.raises(ScaeError, match=r"training\.jitter is 1\.0 but loss\.guidance is 0"):
        check_guidance(replace(guided_experiment(), loss=LossWeights()))
