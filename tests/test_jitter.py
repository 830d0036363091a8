"""Small affine maps of images, against maps made one by one, and groups steady under them."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import affine_transform

from scae.arrangements import Arrangements
from scae.config import LossWeights
from scae.data.interface import ImageSource
from scae.errors import ScaeError
from scae.jitter import MAX_ROTATION, MAX_SCALING, MAX_SHEAR, MAX_SHIFT, jitter
from scae.models import build
from scae.parts import PartCapsules
from scae.training import guidance, steady_groups
from scae.training.checkpoints import CheckpointStore, read_checkpoint
from scae.training.guidance import MOST_JITTER, check_guidance, find_groups, groups_from
from scae.training.steady_groups import SteadyGroups, fit_steady_groups, part_values
from training_runs import guided_experiment, image_data, run, source_of


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
    return float((steady.groups(values).argmax(1) == label).float().mean())


def test_groups_wrong_in_what_moves_are_put_right() -> None:
    views, label = two_clouds()
    # Wrong where an image happens to be far off in the direction in which it can move.
    wrong = torch.where(views[0, :, 1] > 1, 1 - label, label)
    told = torch.nn.functional.one_hot(wrong, 2).float()
    assert 0.75 < float((wrong == label).float().mean()) < 0.9
    fresh, truth = two_clouds(seed=1)
    assert accuracy(fit_steady_groups(views, told), fresh[0], truth) > 0.97
    # Without moves nothing says that this border is arbitrary.
    still = views[:1].expand_as(views)
    assert accuracy(fit_steady_groups(still, told), fresh[0], truth) < 0.93


def test_the_same_seed_finds_the_same_groups_and_leaves_the_generator_alone() -> None:
    views, label = two_clouds(images=40)
    told = torch.nn.functional.one_hot(label, 2).float()
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first, second = (fit_steady_groups(views, told, seed=2).tensors() for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(first[name], second[name]) for name in first)
    other = fit_steady_groups(views, told, seed=3).tensors()
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
    assert not any(tensor.requires_grad for tensor in again.tensors().values())


def test_a_group_is_not_left_to_die_out() -> None:
    """One image in thirty of a kind of its own, which views do not agree on."""
    views, label = two_clouds(images=300)
    told = torch.nn.functional.one_hot(torch.where(torch.arange(300) % 30 == 0, 2, label), 3)
    steady = fit_steady_groups(views, told.float())
    share = steady_groups._agreed(steady, views, told.float()).mean(0)
    assert share.min() >= 0.1 / 3
    assert torch.equal(share, told.float().mean(0))


def test_values_that_are_not_finite_are_refused() -> None:
    views, label = two_clouds(images=20)
    views[2, 3, 1] = float("inf")
    with pytest.raises(ScaeError, match=r"not finite.* lower optimizer\.lr"):
        fit_steady_groups(views, torch.nn.functional.one_hot(label, 2).float())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3))
def test_the_strongest_jitter_does_not_mirror(amount: list[float]) -> None:
    angle, scaling, shear = (MOST_JITTER * x for x in amount)
    scale = 1 + MAX_SCALING * scaling
    cos, sin = math.cos(MAX_ROTATION * angle) / scale, math.sin(MAX_ROTATION * angle) / scale
    assert scale > 0 and cos * cos - (MAX_SHEAR * shear - sin) * sin > 0


def test_jitter_decides_which_groups_guide(monkeypatch) -> None:
    seen = []

    def fit(views, groups, seed):
        seen.append((views, groups))
        return fit_steady_groups(views, groups, seed)

    monkeypatch.setattr(steady_groups, "ROUNDS", 2)
    monkeypatch.setattr(guidance, "fit_steady_groups", fit)
    experiment = guided_experiment()
    torch.manual_seed(0)
    model, source = build(experiment.model), ImageSource(image_data(), seed=0)
    steady = find_groups(model, experiment, source)
    assert isinstance(steady, SteadyGroups) and model.training
    [(views, groups)] = seen
    size = experiment.training.batch
    images = torch.cat([source.batch(step, size)[0] for step in range(40 // size)])
    with torch.no_grad():
        parts = model.eval().part_encoder(images)
        draw = torch.Generator().manual_seed(experiment.training.seed)
        moved = model.part_encoder(jitter(images, 1.0, draw))
    torch.testing.assert_close(views[0], part_values(parts))
    torch.testing.assert_close(views[1], part_values(moved))
    assert views.shape[0] == 6 and not torch.equal(views[1], views[2])
    plain = replace(experiment, training=replace(experiment.training, jitter=0.0))
    found = find_groups(model, plain, source)
    assert isinstance(found, Arrangements) and len(seen) == 1
    torch.testing.assert_close(groups, found.groups_of(parts))


def test_checkpoints_have_the_groups(tmp_path) -> None:
    experiment = guided_experiment(steps=10, checkpoint_every=10, object_share=0.6)
    run(experiment, tmp_path)
    tensors = read_checkpoint(CheckpointStore(tmp_path / "checkpoints", 2).paths()[-1]).tensors
    kept = groups_from({n[7:]: t for n, t in tensors.items() if n.startswith("groups.")})
    # Parts stay as they are while objects learn, so the groups can be found again.
    model = build(experiment.model)
    model.load_state_dict({n[6:]: t for n, t in tensors.items() if n.startswith("model.")})
    found = find_groups(model, experiment, source_of(experiment))
    for name, tensor in found.tensors().items():
        torch.testing.assert_close(kept.tensors()[name], tensor)


@pytest.mark.parametrize("strength", [-1.0, 3.1, float("nan")])
def test_a_jitter_out_of_range_is_refused(strength: float) -> None:
    guided = guided_experiment(jitter=strength)
    with pytest.raises(ScaeError, match=r"training\.jitter is .* 0 to 3"):
        check_guidance(guided)


def test_jitter_without_guidance_is_refused() -> None:
    with pytest.raises(ScaeError, match=r"training\.jitter is 1\.0 but loss\.guidance is 0"):
        check_guidance(replace(guided_experiment(), loss=LossWeights()))
