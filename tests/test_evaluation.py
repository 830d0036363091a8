"""Whole evaluations with models whose answers are known."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from scae.config import (
    ConstellationDataConfig,
    ConstellationExperiment,
    ImageDataConfig,
    ImageExperiment,
)
from scae.data import ImageData, Scenes
from scae.errors import ScaeError
from scae.evaluation import evaluate, evaluate_images, evaluate_scenes
from scae.inference import presences
from scae.models import ConstellationAutoencoder, ObjectPresences, StackedCapsuleAutoencoder
from small_models import IMAGES, POINTS


class Quadrants(StackedCapsuleAutoencoder):
    """Object k is present where quadrant k of the image is bright; its posterior knows less."""

    def __init__(self) -> None:
        super().__init__(replace(IMAGES, image_size=(8, 8)))
        self.dropout = nn.Dropout(0.5)
        self.modes: list[tuple[bool, bool]] = []

    def object_presences(self, image: Tensor) -> ObjectPresences:
        self.modes.append((self.training, torch.is_grad_enabled()))
        prior = self.dropout(nn.functional.adaptive_avg_pool2d(image, 2).flatten(1))  # (B, 4)
        return ObjectPresences(prior, prior * torch.tensor([1.0, 1.0, 0.0, 0.0]))


class Sides(ConstellationAutoencoder):
    """Points on the right belong to object 1."""

    def segment(self, points: Tensor, presence: Tensor) -> Tensor:
        return torch.where(presence > 0.5, (points[..., 0] > 0).long(), -1)


def quadrant_data(count: int, seed: int, turn: int = 0) -> ImageData:
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 4
    images = rng.integers(0, 20, size=(count, 1, 8, 8))
    for image, label in zip(images, labels, strict=True):
        row, column = 4 * (label // 2), 4 * (label % 2)
        image[:, row : row + 4, column : column + 4] += 200
    named = torch.from_numpy((labels + turn) % 4)
    return ImageData(torch.from_numpy(images.astype(np.uint8)), named, "quadrants", "all")


def test_presences_are_of_all_images_without_noise_and_gradients() -> None:
    model, data = Quadrants().train(), quadrant_data(600, 0)
    prior, posterior = presences(model, data.images)
    assert model.training and model.modes == [(False, False)] * 3
    means = data.images.numpy().reshape(600, 2, 4, 2, 4).mean((2, 4)).reshape(600, 4) / 255
    np.testing.assert_allclose(prior, means, rtol=1e-5)
    np.testing.assert_allclose(posterior, means * [1, 1, 0, 0], rtol=1e-5)


def test_images_in_both_protocols() -> None:
    result = evaluate_images(Quadrants(), quadrant_data(80, 0), quadrant_data(40, 1))
    assert result["lin_match"]["prior"] == {"train-test": 1.0, "full": 1.0}
    assert result["lin_pred"]["prior"] == {"train-test": 1.0}
    # The posterior tells quadrants 0 and 1 apart, but 2 from 3 only by chance.
    assert 0.7 < result["lin_match"]["posterior"]["full"] < 0.95
    assert result["nmi"]["prior"]["full"] == pytest.approx(1)
    assert result["confusion"]["prior"]["train-test"] == [
        [10 if row == column else 0 for column in range(5)] for row in range(4)
    ]
    assert result["baselines"] == {"k-means on pixels": {"train-test": 1.0, "full": 1.0}}
    assert (result["n_train"], result["n_test"], result["clusters"]) == (80, 40, 4)
    assert {"parts_present", "objects_sharing"} <= set(result["capsules"])
    assert json.loads(json.dumps(result)) == result
    assert set(result["protocols"]) == {"train-test", "full"}


def test_generalisation_keeps_what_was_fitted_on_train() -> None:
    renamed = quadrant_data(40, 1, turn=1)  # other names for the same images
    result = evaluate_images(Quadrants(), quadrant_data(80, 0), renamed, transfer=True)
    assert result["lin_match"]["prior"] == {"train-target": 0.0, "target": 1.0}
    assert result["lin_pred"]["prior"] == {"train-target": 0.0}


def test_images_without_labels_are_refused() -> None:
    data = quadrant_data(8, 0)
    with pytest.raises(ScaeError, match="no labels"):
        evaluate_images(Quadrants(), replace(data, labels=None))


def test_own_images_are_loaded_limited_and_scored(tmp_path: Any) -> None:
    data = quadrant_data(60, 0)
    path = tmp_path / "images.npz"
    np.savez(path, images=data.images.numpy(), labels=data.labels.numpy())
    model = Quadrants()
    experiment = ImageExperiment("test", "", model.config, data=ImageDataConfig(name=str(path)))
    result = evaluate(model, experiment, limit=40)
    assert result["lin_match"]["prior"] == {"full": 1.0} and result["lin_pred"]["prior"] == {}
    assert (result["n_train"], result["n_test"]) == (40, 0)
    np.savez(path, images=np.zeros((8, 9, 9), np.uint8), labels=np.arange(8))
    with pytest.raises(ScaeError, match="9x9 with 1 channels, but this model takes 8x8"):
        evaluate(model, experiment)


def test_scenes() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=(50, 6))
    presence = rng.integers(2, size=(50, 6)).astype(np.float32)
    presence[0] = 0
    points = rng.random((50, 6, 2)).astype(np.float32) - 0.5
    points[..., 0] = np.where(labels == 1, 1, -1) * (0.1 + rng.random((50, 6)))
    scenes = Scenes(*map(torch.from_numpy, (points, presence, labels)))
    result = evaluate_scenes(Sides(POINTS), scenes)
    assert result["segmentation_error"] == 0
    assert result["n_scenes"] < 50
    assert result["n_points"] == presence.sum()
    assert 0 < result["baselines"]["single capsule"]["segmentation_error"] < 0.5
    assert 0 < result["baselines"]["chance"]["segmentation_error"] < 0.7
    assert json.loads(json.dumps(result)) == result
    with pytest.raises(ScaeError, match="do not say which object"):
        evaluate_scenes(Sides(POINTS), replace(scenes, pattern_id=None))


def test_generated_scenes_are_also_scored_with_noise() -> None:
    experiment = ConstellationExperiment("test", "", POINTS, data=ConstellationDataConfig())
    result = evaluate(ConstellationAutoencoder(POINTS), experiment, limit=30)
    assert result["n_scenes"] <= 30
    assert set(result["error_at_noise"]) == {"0.1", "0.25"}
