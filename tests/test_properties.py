"""Properties that must hold for any input, found by hypothesis."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from scae.config import (
    Form,
    LossWeights,
    NoiseConfig,
    PoseKind,
    SetTransformerConfig,
    StackedConfig,
)
from scae.errors import ScaeError
from scae.geometry import (
    compose,
    invert,
    matrix,
    pose_from_parameters,
    similarity,
    transform_points,
)
from scae.losses import loss_terms, printed_posterior_sparsity, two_parts_loss
from scae.mixtures import explain_parts, explain_points
from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder, build
from scae.models.set_transformer import AttentionPooling, SetTransformer
from small_models import IMAGES, POINTS

seeds = st.integers(0, 2**31 - 1)
few = settings(max_examples=10, deadline=None)
SMALL_SET = SetTransformerConfig(layers=2, heads=2, width=8, output=16)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def uniform(seed: int, *shape: int) -> Tensor:
    return torch.rand(*shape, generator=generator(seed), dtype=torch.float64)


def small_stacked(**changes: object) -> StackedCapsuleAutoencoder:
    torch.manual_seed(0)
    return build(replace(IMAGES, **changes))


def small_constellation(seed: int = 0, **changes: object) -> ConstellationAutoencoder:
    torch.manual_seed(seed)
    return build(replace(POINTS, **changes))


@few
@given(seeds, st.sampled_from(["affine", "similarity"]))
def test_inverse_undoes_a_pose(seed: int, kind: PoseKind) -> None:
    pose = pose_from_parameters(normal(seed, 7, 6), kind)
    identity = torch.eye(3, dtype=torch.float64)[:2].expand(7, 2, 3)
    torch.testing.assert_close(compose(invert(pose), pose), identity, rtol=0, atol=1e-8)
    torch.testing.assert_close(compose(pose, invert(pose)), identity, rtol=0, atol=1e-8)


@few
@given(seeds)
def test_composition_is_the_matrix_product_and_acts_in_order(seed: int) -> None:
    outer = pose_from_parameters(normal(seed, 4, 6))
    inner = pose_from_parameters(normal(seed + 1, 4, 6))
    both = compose(outer, inner)
    torch.testing.assert_close(matrix(both), matrix(outer) @ matrix(inner))
    points = normal(seed + 2, 4, 9, 2)
    expected = transform_points(outer, transform_points(inner, points))
    torch.testing.assert_close(transform_points(both, points), expected)


@few
@given(seeds, st.floats(-180, 180), st.floats(0.2, 3.0))
def test_similarities_keep_shape(seed: int, degrees: float, scale: float) -> None:
    points = normal(seed, 6, 2)
    moved = transform_points(similarity(scale, degrees, (0.3, -0.7)).double(), points)
    before, after = torch.cdist(points, points), torch.cdist(moved, moved)
    torch.testing.assert_close(after, scale * before, rtol=1e-5, atol=1e-6)


@few
@given(seeds)
def test_votes_move_with_their_object(seed: int) -> None:
    """V = OV OP: a change of the object's pose changes every vote by the same map."""
    model = small_stacked(noise=NoiseConfig(amplitude=0.0)).double()
    votes = model.object_decoder(normal(seed, 2, 4, 8))
    move = pose_from_parameters(normal(seed + 1, 6))
    moved = compose(compose(move, votes.object_pose)[:, :, None], votes.relation)
    torch.testing.assert_close(moved, compose(move, votes.pose))


@few
@given(seeds, st.sampled_from(["mask", "log"]), st.sampled_from([0, 3]))
def test_set_encoding_does_not_depend_on_order(seed: int, form: str, inducing: int) -> None:
    torch.manual_seed(0)
    config = SetTransformerConfig(
        layers=2, heads=2, width=8, output=16, presence=form, inducing_points=inducing
    )
    module = SetTransformer(3, 4, config).double()
    x, presence = normal(seed, 2, 7, 3), (uniform(seed, 2, 7) > 0.4).double()
    order = torch.randperm(7, generator=generator(seed))
    torch.testing.assert_close(module(x, presence), module(x[:, order], presence[:, order]))


@few
@given(seeds)
def test_absent_elements_do_not_matter(seed: int) -> None:
    module = SetTransformer(3, 4, SMALL_SET).double()
    x, presence = normal(seed, 2, 7, 3), torch.ones(2, 7, dtype=torch.float64)
    presence[:, 4:] = 0
    other = x.clone()
    other[:, 4:] = normal(seed + 1, 2, 3, 3)
    torch.testing.assert_close(module(x, presence), module(other, presence))
    torch.testing.assert_close(module(x, presence), module(x[:, :4]))


@few
@given(seeds)
def test_responsibilities_follow_the_points(seed: int) -> None:
    model = small_constellation(noise=NoiseConfig(amplitude=0.0)).double()
    points, presence = normal(seed, 2, 6, 2), (uniform(seed, 2, 6) > 0.3).double()
    order = torch.randperm(6, generator=generator(seed))
    there = model.explain(points, presence)
    back = model.explain(points[:, order], presence[:, order])
    torch.testing.assert_close(back.votes.points, there.votes.points)
    torch.testing.assert_close(back.mixture.responsibility, there.mixture.responsibility[:, order])


@few
@given(seeds, st.sampled_from(["mask", "log"]), st.booleans())
def test_folded_pooling_equals_its_definition(seed: int, form: str, one_head: bool) -> None:
    torch.manual_seed(seed % 1000)
    pool = AttentionPooling(6, 24, 5, 1 if one_head else 3, form).double()
    h = normal(seed, 3, 7, 6).requires_grad_()
    presence = uniform(seed, 3, 7).round(decimals=1) if form == "log" else torch.ones(3, 7).double()
    results = []
    for forward in (pool, lambda *inputs: pool.folded(*inputs).full()):
        y = forward(h, presence)
        gradients = torch.autograd.grad(y.sin().sum(), [h, *pool.parameters()], allow_unused=True)
        kept = [torch.zeros(()) if g is None else g for g in gradients]
        # The keys' bias cancels in the softmax: zero in one form, rounding in the other.
        results.append((y, [g for g in kept if g.abs().max() > 1e-9]))
    torch.testing.assert_close(results[0][0], results[1][0])
    assert len(results[0][1]) == len(results[1][1])
    for plain, folded in zip(results[0][1], results[1][1], strict=True):
        torch.testing.assert_close(plain, folded)


@few
@given(seeds)
def test_point_mixture_integrates_to_one(seed: int) -> None:
    """Eq. 5 without the dummy is a density over the plane."""
    mean, scale = 0.5 * normal(seed, 1, 4, 2), 0.2 + uniform(seed, 1, 4)
    weight = uniform(seed + 1, 1, 4) + 0.01
    axis = torch.linspace(-8, 8, 321, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)[None]
    density = explain_points(grid, mean, scale, weight, dummy=False).log_likelihood.exp()
    assert float(density.sum()) * float(axis[1] - axis[0]) ** 2 == pytest.approx(1, abs=1e-6)


@few
@given(seeds, st.sampled_from(["printed", "released"]), st.sampled_from(["learned", "coupled"]))
def test_pixel_mixture_integrates_to_one(seed: int, form: Form, alpha: str) -> None:
    """Eq. 10 is a density over the values of a pixel, also where no template is."""
    model = small_stacked(sigma=0.3, image_mixture=form, alpha=alpha).double()
    pose = pose_from_parameters(normal(seed, 1, 5, 6))
    mixture = model.templates.render(pose, uniform(seed, 1, 5), uniform(seed + 1, 1, 5, 1))
    axis = torch.linspace(-4, 5, 601, dtype=torch.float64)
    images = axis[:, None, None, None].expand(-1, 1, *model.config.image_size)
    many = type(mixture)(
        mixture.values.expand(601, -1, -1, -1, -1),
        mixture.logits.expand(601, -1, -1, -1, -1),
        mixture.sigma,
    )
    total = many.log_prob(images).exp().sum(0) * (axis[1] - axis[0])
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-6)


def gaussian(x: np.ndarray, mean: np.ndarray, scale: float) -> float:
    z = (x - mean) / scale
    return math.exp(-0.5 * float(z @ z)) / (scale * math.sqrt(2 * math.pi)) ** len(x)


@few
@given(seeds, st.booleans(), st.booleans())
def test_part_likelihood_by_explicit_loops(seed: int, normalised: bool, dummy: bool) -> None:
    batch, objects, parts, dims = 2, 3, 4, 6
    x, mean = normal(seed, batch, parts, dims), normal(seed + 1, batch, objects, parts, dims)
    scale = 0.5 + uniform(seed + 2, batch, objects, parts)
    weight = uniform(seed + 3, batch, objects, parts) + 1e-3
    result = explain_parts(x, mean, scale, weight, normalised, dummy)
    for b in range(batch):
        total = float(weight[b].sum()) if normalised else 1.0
        for m in range(parts):
            terms = [
                float(weight[b, k, m])
                / total
                * gaussian(x[b, m].numpy(), mean[b, k, m].numpy(), float(scale[b, k, m]))
                for k in range(objects)
            ]
            evidence = sum(terms) + (0.01 * 0.01 if dummy else 0.0)
            assert float(result.log_likelihood[b, m]) == pytest.approx(math.log(evidence))
            assert result.responsibility[b, m].tolist() == pytest.approx(
                [term / evidence for term in terms]
            )


@few
@given(seeds)
def test_two_parts_loss_by_explicit_loops(seed: int) -> None:
    logit = normal(seed, 3, 4)
    winner = torch.randint(0, 4, (3, 6), generator=generator(seed))
    presence = (uniform(seed, 3, 6) > 0.4).double()
    printed = released = 0.0
    for b in range(3):
        for k in range(4):
            wins = sum(float(presence[b, n]) for n in range(6) if int(winner[b, n]) == k)
            p = 1 / (1 + math.exp(-float(logit[b, k])))
            loss = -math.log(p if wins >= 2 else 1 - p)
            printed += loss / 3
            released += loss / 3 if wins > 0 else 0.0
    assert float(two_parts_loss(logit, winner, presence, True)) == pytest.approx(printed)
    assert float(two_parts_loss(logit, winner, presence, False)) == pytest.approx(released)


@few
@given(seeds)
def test_printed_posterior_sparsity_by_explicit_loops(seed: int) -> None:
    log_posterior = 3 * normal(seed, 4, 5, 3)
    mass = log_posterior.exp().numpy()
    example, capsule = mass.sum((1, 2)), mass.sum((0, 1))
    expected = [
        -sum(float(p) * math.log(float(p)) for p in v / v.sum()) for v in (example, capsule)
    ]
    terms = printed_posterior_sparsity(log_posterior)
    assert float(terms.within) == pytest.approx(expected[0], rel=1e-6)
    assert float(terms.between) == pytest.approx(-expected[1], rel=1e-6)


@few
@given(seeds)
def test_posterior_sparsity_over_objects_by_explicit_loops(seed: int) -> None:
    torch.manual_seed(seed)
    config = replace(POINTS, posterior_sparsity="objects")
    model = build(config).double().eval()
    points = 2 * uniform(seed, 4, 6, 2) - 1
    presence = (uniform(seed + 1, 4, 6) < 0.6).double()
    presence[:, 0] = 1
    with torch.no_grad():
        share = model.explain(points, presence).mixture.responsibility  # (B, N, K*votes)
        terms = loss_terms(model, points, presence)
    mass = np.zeros((4, config.objects))
    for b, n, j in np.ndindex(*share.shape):
        mass[b, j // config.votes] += float(share[b, n, j] * presence[b, n])

    def entropy(v: np.ndarray) -> float:
        return -sum(p * math.log(p) for p in v / v.sum() if p > 0)

    within = np.mean([entropy(row) for row in mass])
    assert float(terms.posterior_within) == pytest.approx(within, rel=1e-5, abs=1e-6)
    assert float(terms.posterior_between) == pytest.approx(-entropy(mass.sum(0)), rel=1e-5)


@pytest.mark.parametrize("logit", [-1e4, 1e4])
@pytest.mark.parametrize("form", ["mask", "log"])
def test_presences_of_exactly_zero_and_one(logit: float, form: str) -> None:
    config = SetTransformerConfig(layers=2, heads=2, width=8, output=16, presence=form)
    model = small_stacked(set_transformer=config)
    with torch.no_grad():
        model.part_encoder.pool.bias[..., -1] = logit
        model.object_decoder.bias[..., 6] = -logit
    image = torch.rand(3, 1, 14, 12, generator=generator(1))
    assert set(model.explain(image).parts.presence.unique().tolist()) <= {0.0, 1.0}
    loss = loss_terms(model, image).total(LossWeights())
    loss.backward()
    assert torch.isfinite(loss)
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("alpha", ["learned", "coupled"])
def test_black_background_explains_black_before_training(alpha: str) -> None:
    black = torch.zeros(2, 1, 14, 12)
    grey, dark = (
        small_stacked(background=background, alpha=alpha).eval() for background in ("grey", "black")
    )
    for (name, one), other in zip(
        grey.state_dict().items(), dark.state_dict().values(), strict=True
    ):
        assert torch.equal(one, other) != name.startswith("templates.background")
    value, weight = dark.templates.background_component()
    assert value < 0.05 < grey.templates.background_component()[0]
    if alpha == "learned":  # twenty opaque parts together weigh less
        assert weight.exp() > 20
    gain = loss_terms(dark, black).image_ll - loss_terms(grey, black).image_ll
    assert gain > 0


@pytest.mark.parametrize("decoder", ["capsules", "baseline"])
def test_votes_are_never_surer_than_the_floor(decoder: str) -> None:
    points = torch.randn(6, 5, 2, generator=generator(0))
    free = small_constellation(decoder=decoder)
    floored = small_constellation(decoder=decoder, min_scale=0.3)
    floored.load_state_dict(free.state_dict())
    sharp, blunt = (m.explain(points, torch.ones(6, 5)).votes.scale for m in (free, floored))
    released = 0.01 if decoder == "capsules" else 1e-6
    torch.testing.assert_close(blunt - 0.3, sharp - released)
    assert blunt.min() > 0.3


def test_noise_only_in_training_unless_asked() -> None:
    image = torch.rand(2, 1, 14, 12, generator=generator(3))
    for in_evaluation in (False, True):
        model = small_stacked(noise=NoiseConfig(in_evaluation=in_evaluation)).eval()
        first, second = model.object_presences(image), model.object_presences(image)
        assert torch.equal(first.prior, second.prior) is not in_evaluation
    model.train()
    assert not torch.equal(model.object_presences(image).prior, model.object_presences(image).prior)


@pytest.mark.parametrize(
    ("switch", "attribute"),
    [
        ("part", "parts.logit"),
        ("object", "votes.object_logit"),
        ("object_part", "votes.part_logit"),
    ],
)
def test_each_noise_switch_reaches_its_own_logits(switch: str, attribute: str) -> None:
    only = {"part": False, "object": False, "object_part": False} | {switch: True}
    model = small_stacked(noise=NoiseConfig(**only)).train()
    image = torch.rand(2, 1, 14, 12, generator=generator(3))
    silent = small_stacked(noise=NoiseConfig(amplitude=0.0)).train()
    noisy, quiet = model.explain(image), silent.explain(image)
    for name in ("parts.logit", "votes.object_logit", "votes.part_logit"):
        a, b = noisy, quiet
        for step in name.split("."):
            a, b = getattr(a, step), getattr(b, step)
        if name == attribute:
            assert 0 < (a - b).abs().max() <= 2
        elif switch != "part":  # noisy parts change what the objects see
            assert torch.equal(a, b)


def test_stop_gradients_cut_objects_from_poses() -> None:
    image = torch.rand(2, 1, 14, 12, generator=generator(3))
    only_parts = LossWeights(
        image=0.0, prior_within=0.0, prior_between=0.0, posterior_within=0.0, posterior_between=0.0
    )
    for stop in (True, False):
        model = small_stacked(stop_gradient_inputs=stop, stop_gradient_targets=stop)
        loss_terms(model, image).total(only_parts).backward()
        gradient = model.part_encoder.pool.weight.grad
        assert gradient is not None
        pose, features = gradient[..., :6].abs().max(), gradient[..., 6:9].abs().max()
        assert (float(pose) == 0) is stop
        assert float(features) > 0  # special features always learn from the objects (section 2.3)


def test_images_of_another_size_are_refused() -> None:
    with pytest.raises(ScaeError, match=r"\(1, 28, 28\).*\(1, 14, 12\)"):
        small_stacked().explain(torch.zeros(2, 1, 28, 28))
    with pytest.raises(ScaeError, match="at least 23x23"):
        build(StackedConfig(image_size=(14, 14)))


@pytest.mark.parametrize("encoder", ["attention", "conv", "linear"])
def test_parts_start_at_the_configured_size_and_presence(encoder: str) -> None:
    changes = {"part_scale_init": -1.0, "part_presence_init": 2.0, "alpha_init": 3.0}
    noise = NoiseConfig(amplitude=0.0)
    before = small_stacked(part_encoder=encoder, noise=noise)
    after = small_stacked(part_encoder=encoder, noise=noise, **changes)
    image = torch.rand(3, 1, 14, 12, generator=generator(2))
    shift = after.explain(image).parts.logit - before.explain(image).parts.logit
    torch.testing.assert_close(shift, torch.full_like(shift, 2.0))
    black = torch.zeros_like(image)
    linear = after.explain(black).parts.pose[..., :2]  # (B, M, 2, 2)
    size = linear.det().abs().sqrt()
    torch.testing.assert_close(
        size, torch.full_like(size, torch.sigmoid(torch.tensor(-1.0)) + 0.01)
    )
    alpha = after.templates.alpha_logits.detach()
    assert float(alpha[0, 2, 2]) == 3.0 and float(alpha.min()) < 0.1


def test_vote_scales_follow_the_floor() -> None:
    model = small_stacked(min_scale=0.02).eval()
    image = torch.rand(3, 1, 14, 12, generator=generator(2))
    low = model.explain(image).votes.scale
    model.object_decoder.min_scale.fill_(0.5)
    torch.testing.assert_close(model.explain(image).votes.scale, low + 0.48)


@few
@given(seeds, st.floats(0.01, 100.0), st.floats(-50.0, 50.0))
def test_scenes_are_explained_whatever_their_units(seed: int, unit: float, shift: float) -> None:
    model = small_constellation(seed % 100).double().eval()
    points, presence = normal(seed, 4, 6, 2), (uniform(seed, 4, 6) < 0.7).double()
    presence[:, :2] = 1
    here, there = (model.explain(p, presence) for p in (points, unit * points + shift))
    torch.testing.assert_close(here.mixture.joint, there.mixture.joint, rtol=1e-6, atol=1e-6)
    moved = unit * here.scene_votes().points + shift
    torch.testing.assert_close(there.scene_votes().points, moved, rtol=1e-6, atol=1e-6)
    scale = unit * here.scene_votes().scale
    torch.testing.assert_close(there.scene_votes().scale, scale, rtol=1e-6, atol=1e-9)
