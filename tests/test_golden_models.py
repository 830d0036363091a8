"""Encoders, decoders and whole models against the authors' numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import golden_files
import golden_weights as carry
from golden_files import GRADIENT, OUTPUT, close, gradients_close
from golden_weights import Variables, section
from scae.config import (
    ConstellationConfig,
    LossWeights,
    NoiseConfig,
    SetTransformerConfig,
    StackedConfig,
)
from scae.geometry import matrix
from scae.losses import LossTerms, loss_terms
from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder
from scae.models.object_decoder import BaselineDecoder, ObjectDecoder
from scae.models.part_encoder import PartEncoder
from scae.models.templates import sobel_edges, sobel_target
from scae.training.optimizers import TFRMSProp

SILENT = NoiseConfig(amplitude=0.0)


def tensor(array: np.ndarray, grad: bool = False) -> Tensor:
    return torch.from_numpy(np.array(array, order="C")).requires_grad_(grad)


def images(array: np.ndarray) -> np.ndarray:
    """NHWC to our NCHW."""
    return np.moveaxis(array, -1, -3)


@pytest.mark.parametrize("name", ["affine", "nodeform", "noscale", "similarity"])
def test_capsule_layer(name: str) -> None:
    golden = golden_files.load(f"capsule_layer_{name}")
    features = tensor(golden["in/features"], grad=True)
    _batch, objects, parts = golden["out/scale"].shape
    decoder = ObjectDecoder(
        features.shape[-1],
        objects,
        parts,
        hidden=golden["w/capsule_layer/batch_mlp/batch_linear/add/b"].shape[-1],
        params=golden["out/raw_caps_params"].shape[-1],
        pose="similarity" if name == "similarity" else "affine",
        noise=SILENT,
        deformations=name != "nodeform",
        learn_scale=name != "noscale",
    )
    weights = section(golden, "w/")
    carry.load(carry.object_decoder(decoder, Variables(weights), "capsule_layer"), decoder)
    votes = decoder(features)
    pose = matrix(votes.pose)
    close(pose, golden["out/vote"])
    close(votes.scale, golden["out/scale"])
    close(votes.presence, golden["out/vote_presence"])
    close(votes.object_logit, golden["out/pres_logit_per_caps"][..., 0])
    close(votes.part_logit, golden["out/pres_logit_per_vote"])
    close(votes.features, golden["out/raw_caps_params"])
    close(votes.deformation, golden["out/dynamic_weights_l2"])
    weight = tensor(np.random.RandomState(5).randn(*pose.shape).astype(np.float32))
    objective = (
        (pose * weight).sum()
        + votes.scale.sum()
        + votes.presence.square().sum()
        + votes.deformation
    )
    close(objective, golden["out/objective"])
    objective.backward()
    close(features.grad, golden["g_in/features"], GRADIENT)
    gradients = Variables(section(golden, "g_w/"), weights)
    gradients_close(carry.object_decoder(decoder, gradients, "capsule_layer"))


@pytest.mark.parametrize(
    ("name", "encoder", "pose"),
    [
        ("conv", "conv", "affine"),
        ("conv_att", "attention", "affine"),
        ("conv_att_similarity", "attention", "similarity"),
        ("linear", "linear", "affine"),
    ],
)
def test_part_encoder(name: str, encoder: str, pose: str) -> None:
    golden = golden_files.load(f"part_encoder_{name}")
    image = tensor(images(golden["in/image"]), grad=True)
    channels = tuple(golden[f"w/conv_net_2d/conv_2d_{i}/b"].shape[0] for i in range(4))
    config = StackedConfig(
        image_size=(image.shape[2], image.shape[3]),
        channels=image.shape[1],
        parts=golden["out/presence"].shape[1],
        special_features=golden["out/feature"].shape[-1],
        part_encoder=encoder,
        attention_pooling="released",
        part_pose=pose,
        cnn_channels=channels,
        noise=SILENT,
    )
    module = PartEncoder(config)
    weights = section(golden, "w/")
    carry.load(carry.part_encoder(module, Variables(weights)), module)
    parts = module(image)
    close(parts.pose.flatten(-2), golden["out/pose"])
    close(parts.features, golden["out/feature"])
    close(parts.presence, golden["out/presence"])
    close(parts.logit, golden["out/presence_logit"])
    close(module.cnn(image), images(golden["out/img_embedding"]))
    objective = parts.pose.square().sum() + parts.presence.sum() + parts.features.square().sum()
    close(objective, golden["out/objective"])
    objective.backward()
    close(image.grad, images(golden["g_in/image"]), GRADIENT)
    gradients = Variables(section(golden, "g_w/"), weights)
    gradients_close(carry.part_encoder(module, gradients))


def test_sobel() -> None:
    golden = golden_files.load("sobel")
    image = tensor(images(golden["in/img"]))
    close(sobel_target(image), images(golden["out/default"]))
    close(sobel_target(image, subtract_median=False), images(golden["out/nomedian"]))
    # (B, C, 2, H, W) to (B, H, W, C, 2)
    raw = sobel_edges(image).permute(0, 3, 4, 1, 2)
    close(raw, golden["out/raw"])
    mnist_like = tensor(images(golden["in/mnist_like"]))
    close(sobel_target(mnist_like), images(golden["out/default_mnistlike"]))


def test_constellation_baseline_decoder() -> None:
    """Only votes and scales: the released presence logits are pure noise."""
    golden = golden_files.load("constellation_baseline_decoder")
    encoding = tensor(golden["in/h"])
    _batch, objects, inputs = encoding.shape
    parts = golden["out/scale"].shape[1] // objects
    hidden = golden["w/constellation_decoder/batch_mlp/batch_linear/add/b"].shape[-1]
    decoder = BaselineDecoder(inputs, objects, parts, hidden, SILENT)
    carry.load(carry.baseline_decoder(decoder, Variables(section(golden, "w/"))), decoder)
    votes = decoder(encoding)
    close(votes.scale.flatten(1), golden["out/scale"])
    close(votes.points.flatten(1, 2), golden["out/vote"])


def terms_close(terms: LossTerms, golden: dict[str, np.ndarray]) -> None:
    close(terms.part_ll, golden["out/log_prob"])
    close(terms.deformation, golden["out/dynamic_weights_l2"])
    close(terms.prior_within, golden["out/prior_within_sparsity_loss"])
    close(-terms.prior_between, golden["out/prior_between_sparsity_loss"])
    close(terms.posterior_within, golden["out/posterior_within_sparsity_loss"])
    close(-terms.posterior_between, golden["out/posterior_between_sparsity_loss"])


def train_three_steps(
    model: torch.nn.Module,
    objective: Callable[[], Tensor],
    golden: dict[str, np.ndarray],
    pairs: Callable[[Variables], list[tuple[Tensor, np.ndarray]]],
    expected: Callable[[dict[str, np.ndarray]], np.ndarray],
    lr: float,
    epsilon: float,
) -> None:
    """The authors' optimiser on the same batch: objective and all weights after each step."""
    optimizer = TFRMSProp(model.parameters(), lr=lr, epsilon=epsilon, momentum=0.9)
    for step in (1, 2, 3):
        optimizer.zero_grad()
        objective().backward()
        optimizer.step()
        after = section(golden, f"step{step}/")
        close(objective(), expected(after), 10 * OUTPUT, what=f"objective after step {step}")
        for parameter, array in pairs(Variables(section(after, "w/"))):
            close(parameter, array, GRADIENT, scale=100 * lr, what=f"weights after step {step}")


def test_constellation_model() -> None:
    golden = golden_files.load("constellation_model")
    weights = section(golden, "w/")
    points = tensor(golden["in/corners"], grad=True)
    presence = tensor(golden["in/presence"], grad=True)
    objects = golden["out/caps_presence_prob"].shape[1]
    model = ConstellationAutoencoder(
        ConstellationConfig(
            objects=objects,
            votes=golden["out/vote"].shape[1] // objects,
            classes=2,
            set_transformer=SetTransformerConfig(
                layers=4,
                heads=4,
                width=weights["set_transformer/linear/b"].shape[0],
                output=weights["set_transformer/linear_1/b"].shape[0],
                presence="mask",
            ),
            capsule_hidden=16,
            capsule_params=8,
            object_pose="similarity",
            prior_sparsity="released",
            normalise=False,
            noise=SILENT,
        )
    )

    def pairs(v: Variables) -> list[tuple[Tensor, np.ndarray]]:
        decoder = carry.object_decoder(model.decoder, v, "constellation_capsule/capsule_layer")
        return carry.set_transformer(model.encoder, v) + decoder

    carry.load(pairs(Variables(weights)), model)
    weighting = LossWeights(
        two_parts=10.0, deformation=10.0, posterior_within=0.5, posterior_between=0.25
    )
    explanation = model.explain(points, presence)
    votes, mixture = explanation.votes, explanation.mixture
    close(votes.points.flatten(1, 2), golden["out/vote"])
    close(matrix(votes.pose).flatten(1, 2), golden["out/transform"])
    close(votes.scale.flatten(1), golden["out/scale"])
    # `vote_presence` is cut at the dummy's weight there, and prior sparsity uses the cut ones.
    close((votes.presence.flatten(1) > 0.01).float(), golden["out/vote_presence"])
    close((votes.prior > 0.01).float(), golden["out/caps_presence_prob"])
    close(votes.object_logit, golden["out/pres_logit_per_caps"])
    close(votes.part_logit.flatten(1), golden["out/pres_logit_per_vote"])
    close(votes.features.flatten(1), golden["out/raw_caps_params"])
    close(votes.scale.mean(), golden["out/mean_scale"])
    close(mixture.responsibility, golden["out/posterior_mixing_probs"])
    assert (explanation.winner.numpy() == golden["out/is_from_capsule"]).all()
    winner = mixture.winner[..., None]
    close(votes.points.flatten(1, 2).take_along_dim(winner, 1), golden["out/winner"])

    terms = loss_terms(model, points, presence)
    terms_close(terms, golden)
    close(terms.two_parts, golden["out/sparsity_loss"])
    objective = terms.total(weighting)
    close(objective, golden["out/objective"])
    objective.backward()
    close(points.grad, golden["g_in/corners"], GRADIENT)
    close(presence.grad, golden["g_in/presence"], GRADIENT)
    gradients_close(pairs(Variables(section(golden, "g_w/"), weights)))

    scenes = points.detach(), presence.detach()
    train_three_steps(
        model,
        lambda: loss_terms(model, *scenes).total(weighting),
        golden,
        pairs,
        lambda after: after["objective"],
        lr=1e-3,
        epsilon=1e-2 / 16**2,
    )


STACKED: dict[str, dict[str, Any]] = {
    "alpha_sigmoid": {},
    "coupled_relu1": {
        "alpha": "coupled",
        "template_nonlinearity": "relu1",
        "color_nonlinearity": "relu1",
    },
    "nostopgrad_const4.3": {
        "stop_gradient_inputs": False,
        "stop_gradient_targets": False,
        "within_constant": 4.3,
    },
    "sobel": {"alpha": "coupled", "target": "sobel"},
    "soft_votes": {"render_from": "votes"},
}


@pytest.mark.parametrize("name", STACKED)
def test_stacked_model(name: str) -> None:
    golden = golden_files.load(f"scae_model_{name}")
    weights = section(golden, "w/")
    image = tensor(images(golden["in/image"]))
    _batch, objects = golden["out/caps_presence_prob"].shape
    parts, size = golden["out/templates"].shape[1:3]
    model = StackedCapsuleAutoencoder(
        StackedConfig(
            image_size=(image.shape[2], image.shape[3]),
            parts=parts,
            objects=objects,
            template_size=size,
            special_features=3,
            attention_pooling="released",
            cnn_channels=(8, 8, 8, 8),
            set_transformer=SetTransformerConfig(
                layers=2, heads=1, width=8, output=12, presence="mask"
            ),
            capsule_hidden=10,
            capsule_params=6,
            noise=SILENT,
            **STACKED[name],
        )
    )

    def pairs(v: Variables) -> list[tuple[Tensor, np.ndarray]]:
        return carry.stacked(model, v)

    carry.load(pairs(Variables(weights)), model)
    weighting = LossWeights(
        deformation=10.0,
        prior_within=2.0,
        prior_between=0.35,
        posterior_within=0.7,
        posterior_between=0.2,
    )
    explanation = model.explain(image)
    votes, mixture = explanation.votes, explanation.mixture
    close(votes.pose.flatten(-2), golden["out/vote"])
    close(votes.scale, golden["out/scale"])
    close((votes.presence > 0.01).float(), golden["out/vote_presence"])
    close(votes.part_logit, golden["out/pres_logit_per_vote"])
    close(votes.prior, golden["out/caps_presence_prob"])
    close(votes.features, golden["out/raw_caps_params"])
    close(mixture.responsibility, golden["out/posterior_mixing_probs"])
    close(explanation.parts.presence, golden["out/primary_presence"])
    pose, presence = model.winning_votes(explanation)
    close(pose.flatten(-2), golden["out/winner"])
    close(presence, golden["out/winner_pres"])
    if name == "soft_votes":
        pose, presence = model.soft_votes(explanation)
        close(pose.flatten(-2), golden["out/soft_winner"])
        close(presence, golden["out/soft_winner_pres"])
    coloured = model.templates.templates()[None] * explanation.colors[..., None, None]
    close(coloured, images(golden["out/templates"]))

    close(model.reconstruct(explanation).mode(), images(golden["out/bottom_up_rec_mode"]))
    close(model.reconstruct(explanation, "winner").mode(), images(golden["out/top_down_rec_mode"]))
    # The release draws objects alone with presences cut to 0 or 1, and tiles parts in another
    # order than votes; fed the same, the same images come out (to 1e-5 of white).
    cut = (votes.presence > 0.01).float().flatten(0, 1)
    alone = model.templates.render(
        votes.pose.flatten(0, 1),
        cut * explanation.parts.presence.repeat(objects, 1),
        explanation.colors.repeat(objects, 1, 1),
    )
    close(alone.mode(), images(golden["out/top_down_per_caps_rec_mode"]), scale=1.0)

    terms = loss_terms(model, image)
    terms_close(terms, golden)
    close(terms.image_ll, golden["out/rec_ll"])
    probes = golden["out/posterior_cls_xe"] + golden["out/prior_cls_xe"]
    objective = terms.total(weighting)
    close(objective, golden["out/objective"] - probes)
    objective.backward()
    # Averaged votes are nearly singular poses: there float64 is 2.4e-4 away from the file, so
    # the file itself is no more exact than that.
    tolerance = 1e-3 if name == "soft_votes" else GRADIENT
    gradients_close(pairs(Variables(section(golden, "g_w/"), weights)), tolerance)

    with_gradient = image.clone().requires_grad_()
    loss_terms(model, with_gradient).total(weighting).backward()
    close(with_gradient.grad, images(golden["g_in/image"]), tolerance)

    if "step1/objective" in golden:
        # The probes train too, on stopped gradients; their share of later objectives is not
        # stored, so the first step's weights are compared and the objective only loosely.
        optimizer = TFRMSProp(model.parameters(), lr=3e-5, epsilon=1e-2 / 6**2, momentum=0.9)
        for step in (1, 2, 3):
            optimizer.zero_grad()
            loss_terms(model, image).total(weighting).backward()
            optimizer.step()
            for parameter, array in pairs(Variables(section(golden, f"step{step}/w/"))):
                close(parameter, array, GRADIENT, scale=1e-3, what=f"weights after step {step}")
