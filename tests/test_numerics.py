"""Losses and gradients stay finite for random configurations and extreme batches.

`python tests/test_numerics.py` tries 300 configurations with 10 200 batches and records them.
"""

import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import torch

from mutate_files import write_record
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

BATCH = 3


def random_choices(config: type, rng: random.Random) -> dict[str, Any]:
    """A value for every field that is one of several words or yes or no."""
    kinds = get_type_hints(config)
    words = {name: get_args(kind) for name, kind in kinds.items() if get_origin(kind) is Literal}
    words |= {name: (True, False) for name, kind in kinds.items() if kind is bool}
    return {name: rng.choice(values) for name, values in words.items()}


def random_images(rng: random.Random) -> StackedConfig:
    return replace(
        IMAGES,
        **random_choices(StackedConfig, rng),
        channels=rng.choice([1, 3]),
        special_features=rng.choice([0, 4]),
        object_mlp=(8,),
        alpha_init=rng.choice([0.0, 3.0, 20.0]),
        part_scale_init=rng.uniform(-8, 8),
        part_presence_init=rng.uniform(-20, 20),
        sigma=rng.choice([0.01, 0.25, 1.0]),
        min_scale=rng.choice([1e-3, 0.02, 0.5]),
        noise=NoiseConfig(amplitude=rng.choice([0.0, 2.0, 50.0])),
    )


def random_points(rng: random.Random) -> ConstellationConfig:
    encoder = SetTransformerConfig(
        **random_choices(SetTransformerConfig, rng), layers=2, heads=2, width=8, output=8
    )
    return replace(
        POINTS,
        **random_choices(ConstellationConfig, rng),
        set_transformer=encoder,
        min_scale=rng.choice([None, 0.05, 1.0]),
    )


def random_images_batch(config: StackedConfig, rng: random.Random) -> tuple[torch.Tensor, ...]:
    """Every image is noise, faint noise, black and white, of one value or one point on black."""
    images = torch.rand(BATCH, config.channels, *config.image_size)
    for image in images:
        match rng.randrange(6):
            case 0:
                image *= rng.choice([1e-6, 1e-3])
            case 1:
                image.round_()
            case 2:
                image.fill_(rng.choice([0.0, 1.0, rng.random()]))
            case 3:
                image.zero_()[:, rng.randrange(image.shape[1]), rng.randrange(image.shape[2])] = 1
            case 4:
                image.zero_()[..., image.shape[2] // 2 :] = 1
    return (images,)


def random_points_batch(
    config: ConstellationConfig, rng: random.Random
) -> tuple[torch.Tensor, ...]:
    """Every scene is ordinary, empty, one point, equal points, a line, tiny, huge or far away."""
    points, presence = torch.randn(BATCH, 7, 2), (torch.rand(BATCH, 7) < 0.6).float()
    for scene, present in zip(points, presence, strict=True):
        match rng.randrange(7 if config.normalise else 5):
            case 0:
                present.zero_()
            case 1:
                present.zero_()[rng.randrange(7)] = 1
            case 2:
                scene.copy_(scene[:1].clone())
                present.fill_(1)
            case 3:
                scene[:, 1] = 0
            case 5:
                scene *= rng.choice([1e-4, 1e4])
            case 6:
                scene += 1e3
    return points, presence


def check_configurations(seed: int, batches: int) -> None:
    """One random configuration of each model on random batches."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    images, points = random_images(rng), random_points(rng)
    for config, batch in ((images, random_images_batch), (points, random_points_batch)):
        model = build(config)
        for _ in range(batches):
            check_finite(model, batch(config, rng))


def check_finite(model: CapsuleModel, batch: tuple[torch.Tensor, ...]) -> None:
    model.zero_grad()
    loss = loss_terms(model, *batch).total(LossWeights(two_parts=10.0))
    loss.backward()
    assert torch.isfinite(loss)
    for name, parameter in model.named_parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name


@pytest.mark.parametrize("seed", range(15))
def test_random_configurations_stay_finite(seed: int) -> None:
    check_configurations(seed, 6)


if __name__ == "__main__":
    # python tests/test_numerics.py: 300 configurations, 34 batches each, minutes.
    began, failures = time.monotonic(), []
    for seed in range(150):
        try:
            check_configurations(seed, 34)
        except (AssertionError, RuntimeError) as error:
            failures.append(f"seed {seed}: {error!r}"[:300])
            print(failures[-1], flush=True)
        if seed % 10 == 9:
            write_record(
                Path(__file__).parents[1] / "results" / "reliability" / "numerics.json",
                command="python tests/test_numerics.py",
                configurations=2 * (seed + 1),
                batches=2 * (seed + 1) * 34,
                failures=failures,
                seconds=round(time.monotonic() - began),
            )
