"""The mixture of arrangements against independent truth, and what it tells objects."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scae import arrangements
from scae.arrangements import Arrangements, balanced, fit_arrangements, presence_guidance
from scae.errors import ScaeError
from scae.geometry import compose


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def scenes(images: int, groups: int = 3, parts: int = 12, noise: float = 0.02, seed: int = 0):
    """Poses of parts in arrangements that differ little, under maps that differ much."""
    draw = generator(seed)
    common = torch.randn(parts, 2, 3, generator=draw)
    arrangement = common + 0.3 * torch.randn(groups, parts, 2, 3, generator=draw)
    label = torch.arange(images) % groups
    maps = torch.eye(2, 3) + 0.5 * torch.randn(images, 1, 2, 3, generator=draw)
    pose = compose(maps, arrangement[label])
    return pose + noise * torch.randn(pose.shape, generator=draw), label


def fit(pose: torch.Tensor, groups: int, *args: int, **options: Any) -> Arrangements:
    """All parts present."""
    return fit_arrangements(pose, torch.ones(pose.shape[:2]), groups, *args, **options)


def agreement(groups: torch.Tensor, label: torch.Tensor) -> float:
    """Share of images in the right group under the best naming of groups."""
    found = groups.argmax(1)
    names = itertools.permutations(range(groups.shape[1]))
    return max(float((torch.tensor(name)[found] == label).float().mean()) for name in names)


def some_mixture(seed: int = 0, groups: int = 2, values: int = 12, factors: int = 3):
    draw = generator(seed)
    return Arrangements(
        torch.arange(values // 6),
        torch.ones(values, dtype=torch.float64),
        torch.randn(groups, values, generator=draw).double(),
        torch.randn(groups, values, factors, generator=draw).double(),
        torch.rand(groups, values, generator=draw).double() + 0.5,
    )


def test_density_is_that_of_a_full_gaussian() -> None:
    mixture = some_mixture()
    flat = torch.randn(7, 12, generator=generator(1)).double()
    covariance = mixture.loadings @ mixture.loadings.mT + torch.diag_embed(mixture.noise)
    normal = torch.distributions.MultivariateNormal(mixture.mean, covariance)
    expected = normal.log_prob(flat[:, None]) + 12 / 2 * math.log(2 * math.pi)
    torch.testing.assert_close(mixture.log_joint(flat), expected)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_an_iteration_never_lowers_the_likelihood(seed: int) -> None:
    true, mixture = some_mixture(seed), some_mixture(seed + 1)
    draw = generator(seed)
    factors = torch.randn(200, 3, 1, generator=draw).double()
    group = torch.randint(2, (200,), generator=draw)
    noise = torch.randn(200, 12, generator=draw).double() * true.noise[group].sqrt()
    flat = true.mean[group] + (true.loadings[group] @ factors).squeeze(-1) + noise
    before = mixture.log_joint(flat).logsumexp(1).mean()
    after = mixture.updated(flat, mixture.log_joint(flat).softmax(1)).log_joint(flat)
    assert after.logsumexp(1).mean() >= before - 1e-9


def test_groups_are_found_under_affine_maps_and_on_new_images() -> None:
    pose, label = scenes(900)
    mixture = fit(pose[:600], 3, restarts=3)
    assert agreement(mixture.groups(pose[:600]), label[:600]) > 0.99
    assert agreement(mixture.groups(pose[600:]), label[600:]) > 0.99
    # The maps alone spread images further than arrangements do: k-means cannot tell them apart.
    start = arrangements._kmeans(pose.double().flatten(1), 3, seed=0, trial=0)
    assert agreement(start, label) < 0.5


def test_the_most_likely_of_several_starts_is_kept() -> None:
    pose, _ = scenes(300, groups=4, noise=0.3)

    def likelihood(mixture: Arrangements) -> float:
        return float(mixture.log_joint(mixture.flat(pose)).logsumexp(1).mean())

    one, several = (likelihood(fit(pose, 4, restarts=n)) for n in (1, 4))
    assert several >= one


def test_given_groups_are_a_start_that_is_put_right() -> None:
    pose, label = scenes(600)
    mostly = torch.where(torch.arange(600) % 5 == 0, (label + 1) % 3, label)  # 80 % right
    hot = torch.nn.functional.one_hot(mostly, 3).float()
    mixture = fit(pose, 3, begin_with=hot)
    assert float((mixture.groups(pose).argmax(1) == label).float().mean()) > 0.99
    # Numbers of groups stay those that were given, and neither seed nor restarts count.
    named = torch.tensor([2, 0, 1])
    renamed = fit(pose, 3, 7, 5, begin_with=hot[:, named])
    torch.testing.assert_close(renamed.groups(pose), mixture.groups(pose)[:, named])


def test_fitting_is_a_function_of_poses_and_seed() -> None:
    pose, _ = scenes(120)
    first, second, other = (fit(pose, 3, seed, 2) for seed in (0, 0, 1))
    assert all(torch.equal(a, second.tensors()[n]) for n, a in first.tensors().items())
    assert not torch.equal(first.mean, other.mean)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 5), st.floats(0.1, 5.0), st.integers(0, 100))
def test_balanced_responsibilities_use_all_groups_alike(groups, size, seed) -> None:
    log_joint = size * torch.randn(400, groups, generator=generator(seed)).double()
    log_joint[:, 0] += 1  # one group is favoured by all
    weights = balanced(log_joint)
    torch.testing.assert_close(weights.sum(1), torch.ones(400).double())
    assert (weights.mean(0) * groups - 1).abs().max() < 0.1
    # Only whole groups are favoured or not: within two groups, images keep their order.
    odds = (weights[:, 0] / weights[:, 1]).log() - (log_joint[:, 0] - log_joint[:, 1])
    assert odds.max() - odds.min() < 1e-6


def test_guidance_is_a_cross_entropy_over_objects_dealt_out_to_groups() -> None:
    presence = torch.rand(4, 5, generator=generator()) * 0.9 + 0.05
    groups = torch.rand(4, 2, generator=generator(1)).softmax(1)
    total = 0.0
    for image, k in itertools.product(range(4), range(5)):
        wanted, given_ = float(groups[image, k % 2]), float(presence[image, k])
        total -= wanted * math.log(given_) + (1 - wanted) * math.log(1 - given_)
    torch.testing.assert_close(presence_guidance(presence, groups), torch.tensor(total / 4))


def test_guidance_of_certain_presences_is_finite() -> None:
    presence = torch.tensor([[0.0, 1.0]], requires_grad=True)
    guidance = presence_guidance(presence, torch.tensor([[1.0, 0.0]]))
    guidance.backward()
    assert torch.isfinite(guidance) and presence.grad is not None
    assert torch.isfinite(presence.grad).all()


def test_parts_that_never_move_do_no_harm() -> None:
    pose, label = scenes(300)
    pose[:, 2] = torch.eye(2, 3)
    assert agreement(fit(pose, 3, restarts=3).groups(pose), label) > 0.99


def test_too_few_images_are_refused() -> None:
    with pytest.raises(ScaeError, match="7 images are too few to find 4 groups"):
        fit(scenes(7)[0], 4)


def test_where_an_object_is_does_not_matter() -> None:
    pose, _ = scenes(120)
    mixture = fit(pose, 3, restarts=1)
    moved = pose.clone()
    moved[..., 2] += torch.randn(120, 1, 2, generator=generator(5))
    torch.testing.assert_close(mixture.groups(moved), mixture.groups(pose), atol=1e-3, rtol=0)


def test_parts_that_hardly_ever_show_do_not_count() -> None:
    pose, label = scenes(300)
    presence = torch.ones(300, 12)
    presence[:, 4] = 0.1
    mixture = fit_arrangements(pose, presence, 3, restarts=3)
    assert mixture.parts.tolist() == [0, 1, 2, 3, *range(5, 12)]
    wild = pose.clone()
    wild[:, 4] = 100 * torch.randn(300, 2, 3, generator=generator(6))
    assert torch.equal(mixture.groups(wild), mixture.groups(pose))
    assert agreement(mixture.groups(pose), label) > 0.99
    # With nothing present at all, all parts are as good as each other.
    assert len(fit_arrangements(pose, torch.zeros(300, 12), 3, restarts=1).parts) == 12


def test_poses_that_are_not_finite_are_refused() -> None:
    pose, _ = scenes(30)
    pose[3, 2, 0, 0] = float("nan")
    with pytest.raises(ScaeError, match=r"not finite.*loss\.guidance"):
        fit(pose, 3)


@pytest.mark.parametrize("different", [1, 2])
def test_fewer_arrangements_than_groups_are_no_catastrophe(different: int) -> None:
    pose = 1000 * scenes(different, groups=different)[0].repeat(40, 1, 1, 1)
    mixture = fit(pose, 4, restarts=1)
    assert all(torch.isfinite(tensor).all() for tensor in mixture.tensors().values())
    torch.testing.assert_close(mixture.groups(pose).sum(1), torch.ones(len(pose)))
