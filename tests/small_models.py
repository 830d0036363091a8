"""Untrained models small enough to ask in milliseconds, wrapped as `scae.load` returns them."""

from dataclasses import replace
from typing import Any

import torch

from scae.api import ImageCapsules, PointCapsules, wrap
from scae.config import (
    ConstellationConfig,
    ConstellationExperiment,
    ImageExperiment,
    OptimizerConfig,
    SetTransformerConfig,
    StackedConfig,
    TrainingConfig,
)
from scae.models import build

ENCODER = SetTransformerConfig(layers=1, heads=2, width=8, output=8)
IMAGES = StackedConfig(
    image_size=(14, 12),
    parts=5,
    objects=4,
    classes=2,
    template_size=5,
    special_features=4,
    cnn_channels=(8, 8),
    cnn_strides=(2, 1),
    set_transformer=ENCODER,
    capsule_hidden=8,
    capsule_params=4,
)
POINTS = ConstellationConfig(set_transformer=ENCODER, capsule_hidden=8, capsule_params=4)
TRAINING = TrainingConfig(steps=3, batch=8)
OPTIMIZER = OptimizerConfig(name="adam", lr=1e-3)
IMAGE_EXPERIMENT = ImageExperiment(
    "test", "no paper", IMAGES, optimizer=OPTIMIZER, training=TRAINING
)
POINT_EXPERIMENT = ConstellationExperiment(
    "test", "no paper", POINTS, optimizer=OPTIMIZER, training=TRAINING
)


def image_capsules(seed: int = 0, **fields: Any) -> ImageCapsules:
    """A model of 14x12 images; edges of its convolutions are not square on purpose."""
    torch.manual_seed(seed)
    experiment = ImageExperiment("test", "no paper", replace(IMAGES, **fields))
    capsules = wrap(build(experiment.model), experiment)
    assert isinstance(capsules, ImageCapsules)
    return capsules


def point_capsules(seed: int = 0, **fields: Any) -> PointCapsules:
    """A model of constellations."""
    torch.manual_seed(seed)
    experiment = ConstellationExperiment("test", "no paper", replace(POINTS, **fields))
    capsules = wrap(build(experiment.model), experiment)
    assert isinstance(capsules, PointCapsules)
    return capsules
