"""Losses and gradients stay finite for random configurations and extreme batches."""

import os
import random
from dataclasses import replace

import pytest
import torch

from scae.config import (
    ConstellationConfig,
    LossWeights,
    NoiseConfig,
    SetTransformerConfig,
    StackedConfig,
)
from scae.losses import loss_terms
from scae.models import CapsuleModel, build
from small_models import IMAGES, POINTS

CONFIGS = int(os.environ.get("SCAE_CONFIGS", "20"))
"""Configurations to draw; each sees every kind of batch. 300 take minutes."""
BATCH = 3


def random_images(rng: random.Random) -> StackedConfig:
    form = ["printed", "released"]
    return replace(
        IMAGES,
        channels=rng.choice([1, 3]),
        special_features=rng.choice([0, 4]),
        part_encoder=rng.choice(["attention", "conv", "linear"]),
        attention_pooling=rng.choice(form),
        object_encoder=rng.choice(["set-transformer", "mlp"]),
        object_mlp=(8,),
        object_pose=rng.choice(["affine", "similarity"]),
        part_pose=rng.choice(["affine", "similarity"]),
        deformations=rng.random() < 0.5,
        alpha=rng.choice(["learned", "coupled"]),
        alpha_init=rng.choice([0.0, 3.0, 20.0]),
        part_scale_init=rng.uniform(-8, 8),
        part_presence_init=rng.uniform(-20, 20),
        image_mixture=rng.choice(form),
        background=rng.choice(["grey", "black"]),
        template_nonlinearity=rng.choice(["sigmoid", "relu1"]),
        sigma=rng.choice([0.01, 0.25, 1.0]),
        learn_sigma=rng.random() < 0.3,
        min_scale=rng.choice([1e-3, 0.02, 0.5]),
        target=rng.choice(["raw", "sobel"]),
        part_likelihood=rng.choice(form),
        posterior_sparsity=rng.choice(form),
        dummy=rng.random() < 0.5,
        stop_gradient_inputs=rng.random() < 0.5,
        stop_gradient_targets=rng.random() < 0.5,
        render_from=rng.choice(["parts", "votes"]),
        noise=NoiseConfig(amplitude=rng.choice([0.0, 2.0, 50.0])),
    )


def random_points(rng: random.Random) -> ConstellationConfig:
    encoder = SetTransformerConfig(
        layers=rng.choice([0, 2]), heads=2, width=8, output=8, presence=rng.choice(["mask", "log"])
    )
    return replace(
        POINTS,
        set_transformer=encoder,
        decoder=rng.choice(["capsules", "baseline"]),
        object_pose=rng.choice(["affine", "similarity"]),
        dummy=rng.random() < 0.5,
        two_parts=rng.choice(["printed", "released"]),
        prior_sparsity=rng.choice(["printed", "released"]),
        posterior_sparsity=rng.choice(["printed", "released", "objects"]),
        min_scale=rng.choice([None, 0.05, 1.0]),
        normalise=rng.random() < 0.7,
    )


def image_batches(config: StackedConfig) -> list[tuple[torch.Tensor, ...]]:
    shape = (BATCH, config.channels, *config.image_size)
    noise = torch.rand(shape)
    extreme = (noise > 0.5).float()
    return [(x,) for x in (torch.zeros(shape), torch.ones(shape), noise, extreme, 1e-6 * noise)]


def point_batches(config: ConstellationConfig) -> list[tuple[torch.Tensor, ...]]:
    points, present = torch.randn(BATCH, 7, 2), torch.ones(BATCH, 7)
    one = torch.zeros(BATCH, 7)
    one[:, 3] = 1
    some = (torch.rand(BATCH, 7) < 0.5).float()
    units = (1e-4, 1.0, 1e3) if config.normalise else (1.0,)
    scenes = [(unit * points, some) for unit in units]
    return [*scenes, (points, 0 * present), (points, one), (0 * points + 0.3, present)]


def check_finite(model: CapsuleModel, batch: tuple[torch.Tensor, ...]) -> None:
    model.zero_grad()
    loss = loss_terms(model, *batch).total(LossWeights(two_parts=10.0))
    loss.backward()
    assert torch.isfinite(loss)
    for name, parameter in model.named_parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name


@pytest.mark.parametrize("seed", range(CONFIGS))
def test_random_configurations_stay_finite(seed: int) -> None:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    images, points = random_images(rng), random_points(rng)
    for config, batches in ((images, image_batches(images)), (points, point_batches(points))):
        model = build(config)
        for batch in batches:
            check_finite(model, batch)
