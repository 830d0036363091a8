"""Geometry, mixtures, attention and sparsity against the authors' numbers."""

import math

import numpy as np
import pytest
import torch

import golden_files
from golden_files import GRADIENT, close, gradients_close
from golden_weights import Variables, capsule_mlp, load, section, set_transformer
from scae.config import SetTransformerConfig
from scae.geometry import matrix, pose_from_parameters, transform_points
from scae.losses import posterior_sparsity, prior_sparsity
from scae.mixtures import entropy, explain_parts, explain_points, normalise, safe_log
from scae.models.layers import CapsuleMLP
from scae.models.set_transformer import SetTransformer, presence_bias
from scae.models.templates import relu1


def tensor(array: np.ndarray, grad: bool = False) -> torch.Tensor:
    return torch.from_numpy(np.array(array)).requires_grad_(grad)


def test_geometric_transform() -> None:
    golden = golden_files.load("geometric_transform")
    raw = tensor(golden["in/pose"], grad=True)
    objective = torch.zeros(())
    weight = tensor(np.random.RandomState(3).randn(*raw.shape).astype(np.float32))
    for similarity in (0, 1):
        for squash in (0, 1):
            pose = pose_from_parameters(
                raw, "similarity" if similarity else "affine", squash=bool(squash)
            )
            name = f"out/sim{similarity}_nonlin{squash}_matrix"
            close(pose.flatten(-2), golden[name + "0"])
            close(matrix(pose), golden[name + "1"])
            if squash:
                objective = objective + (weight * pose.flatten(-2)).sum()
    close(objective, golden["out/objective"])
    objective.backward()
    close(raw.grad, golden["g_in/pose"], GRADIENT)


def test_math_ops() -> None:
    golden = golden_files.load("math_ops")
    x, p = tensor(golden["in/x"]), tensor(golden["in/p"])
    close(relu1(x), golden["out/relu1"])
    close(safe_log(x.abs()), golden["out/safe_log_abs"])
    close(entropy(p).mean(), golden["out/safe_ce"])
    close(normalise(p, 0), golden["out/normalize0"])
    close(normalise(p, 1), golden["out/normalize1"])
    transform, points = tensor(golden["in/transform"]), tensor(golden["in/points"])
    # Affine maps through our 2x3 poses; the file's own results need a homogeneous division.
    affine = transform[..., :2, :]
    expected = points @ affine[..., :2].mT + affine[..., None, :, 2]
    close(transform_points(affine, points), expected.numpy())


def test_batch_mlp() -> None:
    golden = golden_files.load("batch_mlp")
    x = tensor(golden["in/x"], grad=True)
    widths = (
        x.shape[-1],
        golden["w/batch_mlp/batch_linear/add/b"].shape[-1],
        golden["out/y"].shape[-1],
    )
    mlp = CapsuleMLP(x.shape[1], widths, output_bias=False)
    load(capsule_mlp(mlp, Variables(section(golden, "w/")), "batch_mlp"), mlp)
    y = mlp(x.transpose(0, 1)).transpose(0, 1)
    close(y, golden["out/y"])
    objective = y.square().sum()
    close(objective, golden["out/objective"])
    objective.backward()
    close(x.grad, golden["g_in/x"], GRADIENT)
    gradients_close(capsule_mlp(mlp, Variables(section(golden, "g_w/")), "batch_mlp"))


def test_qkv_attention() -> None:
    golden = golden_files.load("qkv_attention")
    q, k, v, presence = (tensor(golden[f"in/{n}"], grad=True) for n in ("q", "k", "v", "presence"))
    width = q.shape[-1]

    def attend(bias: torch.Tensor | None) -> torch.Tensor:
        # One head: (B, 1, n, d).
        return torch.nn.functional.scaled_dot_product_attention(
            q[:, None], k[:, None], v[:, None], attn_mask=bias
        )[:, 0]

    close(attend(None), golden["out/y_nopres"])
    y = attend(presence_bias(presence, "mask", width))
    close(y, golden["out/y"])
    objective = y.square().sum()
    close(objective, golden["out/objective"])
    objective.backward()
    for name, value in (("q", q), ("k", k), ("v", v), ("presence", presence)):
        close(value.grad, golden[f"g_in/{name}"], GRADIENT, what=name)


@pytest.mark.parametrize(
    ("name", "layers", "heads", "points", "norm", "with_presence"),
    [
        ("set_transformer_1head_binpres", 3, 1, 0, True, True),
        ("set_transformer_1head_softpres", 3, 1, 0, True, True),
        ("set_transformer_4head_binpres", 2, 4, 0, True, True),
        ("set_transformer_induced", 3, 1, 4, True, True),
        ("set_transformer_nopres_noln", 3, 1, 0, False, False),
    ],
)
def test_set_transformer(
    name: str, layers: int, heads: int, points: int, norm: bool, with_presence: bool
) -> None:
    golden = golden_files.load(name)
    x = tensor(golden["in/x"], grad=True)
    presence = tensor(golden["in/presence"], grad=True) if with_presence else None
    config = SetTransformerConfig(
        layers=layers,
        heads=heads,
        width=golden["w/set_transformer/linear/b"].shape[0],
        output=golden["out/y"].shape[-1],
        layer_norm=norm,
        inducing_points=points,
        presence="mask",
    )
    module = SetTransformer(x.shape[-1], golden["out/y"].shape[1], config)
    load(set_transformer(module, Variables(section(golden, "w/"))), module)
    y = module(x, presence)
    close(y, golden["out/y"])
    weight = np.random.RandomState(9).randn(*y.shape).astype(np.float32)
    objective = (y * torch.from_numpy(weight)).sum()
    close(objective, golden["out/objective"], scale=float(np.abs(golden["out/y"] * weight).sum()))
    objective.backward()
    close(x.grad, golden["g_in/x"], GRADIENT)
    if presence is not None:
        close(presence.grad, golden["g_in/presence"], GRADIENT)
    gradients = Variables(section(golden, "g_w/"), section(golden, "w/"))
    gradients_close(set_transformer(module, gradients))


@pytest.mark.parametrize("presence", ["pres", "nopres"])
def test_capsule_likelihood(presence: str) -> None:
    golden = golden_files.load(f"capsule_likelihood_normal_{presence}")
    names = ("votes", "scales", "vote_presence", "x", "presence")
    inputs = {name: tensor(golden[f"in/{name}"], grad=True) for name in names}
    mixture = explain_parts(inputs["x"], inputs["votes"], inputs["scales"], inputs["vote_presence"])
    log_likelihood = mixture.log_likelihood
    if presence == "pres":
        log_likelihood = log_likelihood * inputs["presence"]
    objective = log_likelihood.sum(1).mean()
    close(objective, golden["out/log_prob"])
    close(objective, golden["out/objective"])
    close(mixture.responsibility, golden["out/posterior_mixing_probs"])
    assert (mixture.winner.numpy() == golden["out/is_from_capsule"]).all()

    index = mixture.winner[:, None]
    votes, vote_presence = inputs["votes"], inputs["vote_presence"]
    close(votes.take_along_dim(index[..., None], 1).squeeze(1), golden["out/winner"])
    close(vote_presence.take_along_dim(index, 1).squeeze(1), golden["out/winner_pres"])
    dummy = tensor(golden["w/capsule_likelihood/dummy_vote"][0, 0])
    soft = torch.einsum("bmk,bkmd->bmd", mixture.responsibility, votes)
    soft = soft + mixture.dummy_share[..., None] * dummy
    close(soft, golden["out/soft_winner"])
    soft_presence = torch.einsum("bmk,bkm->bm", mixture.responsibility, vote_presence)
    close(soft_presence, golden["out/soft_winner_pres"])
    logits = torch.cat(
        [safe_log(vote_presence), torch.full_like(vote_presence[:, :1], -2 * math.log(10))], 1
    )
    close(logits, golden["out/mixing_logits"])
    close(logits.log_softmax(1), golden["out/mixing_log_prob"])
    beats_dummy = (logits[:, :-1] > logits[:, -1:]).float()
    close(beats_dummy, golden["out/vote_presence"])

    objective.backward()
    for name, value in inputs.items():
        if f"g_in/{name}" in golden:
            close(value.grad, golden[f"g_in/{name}"], GRADIENT, what=name)


@pytest.mark.parametrize("presence", ["pres", "nopres"])
def test_order_invariant_likelihood(presence: str) -> None:
    golden = golden_files.load(f"order_invariant_likelihood_{presence}")
    names = ("votes", "scales", "vote_presence", "x", "presence")
    inputs = {name: tensor(golden[f"in/{name}"], grad=True) for name in names}
    mixture = explain_points(
        inputs["x"], inputs["votes"], inputs["scales"], inputs["vote_presence"]
    )
    log_likelihood = mixture.log_likelihood
    if presence == "pres":
        log_likelihood = log_likelihood * inputs["presence"]
    objective = log_likelihood.sum(1).mean()
    close(objective, golden["out/log_prob"])
    close(objective, golden["out/objective"])
    close(mixture.responsibility, golden["out/posterior_mixing_probs"])
    votes_per_capsule = 4
    winner = mixture.winner
    assert (winner.numpy() // votes_per_capsule == golden["out/is_from_capsule"]).all()
    close(inputs["votes"].take_along_dim(winner[..., None], 1), golden["out/winner"])
    close(inputs["vote_presence"].take_along_dim(winner, 1), golden["out/winner_pres"])
    logits = torch.nn.functional.pad(
        safe_log(inputs["vote_presence"]), (0, 1), value=-2 * math.log(10)
    )
    close(logits, golden["out/mixing_logits"])
    close(logits.log_softmax(1), golden["out/mixing_log_prob"])
    close((logits[:, :-1] > logits[:, -1:]).float(), golden["out/vote_presence"])
    objective.backward()
    for name, value in inputs.items():
        if f"g_in/{name}" in golden:
            close(value.grad, golden[f"g_in/{name}"], GRADIENT, what=name)


def test_sparsity() -> None:
    golden = golden_files.load("sparsity")
    presence = tensor(golden["in/pres"], grad=True)
    prior = prior_sparsity(presence, classes=10)
    close(prior.within, golden["out/l2_within"])
    close(-prior.between, golden["out/l2_between"])
    constant = prior_sparsity(presence, classes=10, within_constant=4.3)
    close(constant.within, golden["out/l2c_within"])
    close(-constant.between, golden["out/l2c_between"])
    two = prior_sparsity(presence, classes=2)
    close(two.within, golden["out/l2_2cls_within"])
    close(-two.between, golden["out/l2_2cls_between"])
    posterior = posterior_sparsity(presence)
    close(posterior.within, golden["out/entropy_within"])
    close(-posterior.between, golden["out/entropy_between"])
    # The release's `kl` is the entropy shifted by log K times the probability mass.
    mass = normalise(presence, 1).sum(1).mean()
    capsules = presence.shape[1]
    close(posterior.within - mass * math.log(capsules), golden["out/kl_within"])
    total = normalise(presence.sum(0), 0).sum()
    close(-posterior.between - total * math.log(capsules), golden["out/kl_between"])
    objective = (
        2 * prior.within + 0.35 * prior.between + 0.7 * posterior.within + 0.2 * posterior.between
    )
    close(objective, golden["out/objective"])
    objective.backward()
    close(presence.grad, golden["g_in/pres"], GRADIENT)
