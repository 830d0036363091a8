"""Whole evaluations with models whose answers are known."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from scae import models
from scae.config import ConstellationConfig, OptimizerConfig, StackedConfig
from scae.errors import ScaeError
from scae.evaluation import (
    evaluate_constellations,
    evaluate_generalisation,
    evaluate_images,
    presences,
)
from scae.training.optimizers import build_optimizer


@dataclass(frozen=True)
class Data:
    images: np.ndarray | Tensor
    labels: np.ndarray | Tensor | None


@dataclass(frozen=True)
class Both:
    prior: Tensor
    posterior: Tensor


class Quadrants(nn.Module):
    """Object k is present where quadrant k of the image is bright; its posterior knows less."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))
        self.dropout = nn.Dropout(0.5)
        self.modes: list[tuple[bool, bool]] = []

    def object_presences(self, image: Tensor) -> Both:
        self.modes.append((self.training, torch.is_grad_enabled()))
        means = nn.functional.adaptive_avg_pool2d(image, 2).flatten(1)  # (B, 4)
        prior = self.dropout(self.gain * means)
        return Both(prior, prior * torch.tensor([1.0, 1.0, 0.0, 0.0]))

    def segment(self, points: Tensor, presence: Tensor, views: int | None = None) -> Tensor:
        side = (points[..., 0] > 0).long()
        return torch.where(presence > 0.5, side, -1)


def quadrant_data(count: int, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 4
    images = rng.integers(0, 20, size=(count, 1, 8, 8))
    for image, label in zip(images, labels, strict=True):
        row, column = 4 * (label // 2), 4 * (label % 2)
        image[:, row : row + 4, column : column + 4] += 200
    return Data(images.astype(np.uint8), labels)


def test_presences_are_batched_deterministic_and_leave_the_model_alone() -> None:
    model = Quadrants().train()
    data = quadrant_data(10, 0)
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    prior, posterior = presences(model, data.images, batch=3)
    assert torch.equal(torch.rand(1), expected)
    assert model.training
    assert model.modes == [(False, False)] * 4
    means = data.images.reshape(10, 2, 4, 2, 4).mean((2, 4)).reshape(10, 4) / 255
    np.testing.assert_allclose(prior, means, rtol=1e-5)
    np.testing.assert_allclose(posterior[:, :2], means[:, :2], rtol=1e-5)
    assert not posterior[:, 2:].any()
    floats = torch.from_numpy(data.images).float() / 255
    again, _ = presences(model, floats, batch=100)
    np.testing.assert_allclose(again, prior, rtol=1e-6)


def test_images_in_both_protocols() -> None:
    result = evaluate_images(
        Quadrants(), quadrant_data(80, 0), quadrant_data(40, 1), dataset="quadrants"
    )
    assert result.lin_match.prior == {"train-test": 1.0, "full": 1.0}
    assert result.lin_pred.prior == {"train-test": 1.0}
    # The posterior tells quadrants 0 and 1 apart, but 2 from 3 only by chance.
    assert 0.7 < result.lin_match.posterior["full"] < 0.95
    assert result.nmi.prior["full"] == pytest.approx(1)
    assert result.confusion.prior["train-test"] == [
        [10 if row == column else 0 for column in range(5)] for row in range(4)
    ]
    assert result.baselines["k-means on pixels"] == {"train-test": 1.0, "full": 1.0}
    assert (result.n_train, result.n_test, result.clusters) == (80, 40, 4)


def test_json_names_protocols_and_levels() -> None:
    result = evaluate_images(Quadrants(), quadrant_data(40, 0), quadrant_data(20, 1))
    read = json.loads(result.to_json())
    assert read == result.to_dict()
    assert set(read["lin_match"]) == set(read["lin_pred"]) == {"prior", "posterior"}
    assert set(read["lin_match"]["prior"]) == set(read["protocols"]) == {"train-test", "full"}
    assert read["unit"] == "fraction"
    assert read["kmeans_restarts"] == 10


def test_one_set_has_only_the_full_protocol() -> None:
    result = evaluate_images(Quadrants(), quadrant_data(40, 0), baselines=False)
    assert result.lin_match.prior == {"full": 1.0}
    assert result.lin_pred.prior == {}
    assert (result.n_test, result.baselines) == (0, {})


def test_generalisation_keeps_what_was_fitted_on_train() -> None:
    target = quadrant_data(40, 1)
    shifted = Data(target.images, (target.labels + 1) % 4)  # other names for the same images
    result = evaluate_generalisation(Quadrants(), quadrant_data(80, 0), shifted)
    assert result.lin_match.prior == {"train-target": 0.0, "target": 1.0}
    assert result.lin_pred.prior == {"train-target": 0.0}


def test_tensors_are_taken_as_well() -> None:
    data = quadrant_data(40, 0)
    tensors = Data(torch.from_numpy(data.images), torch.from_numpy(data.labels))
    plain = evaluate_images(Quadrants(), data, baselines=True)
    again = evaluate_images(Quadrants(), tensors, baselines=True)
    assert again.lin_match == plain.lin_match
    assert again.baselines == plain.baselines


@pytest.mark.filterwarnings("ignore:Clustering into one cluster")
def test_single_class_warns() -> None:
    data = quadrant_data(40, 0)
    same = Data(data.images, np.zeros(40, int))
    with pytest.warns(UserWarning, match="single class"):
        result = evaluate_images(Quadrants(), same, same)
    assert result.lin_match.prior == {"train-test": 1.0, "full": 1.0}
    json.loads(result.to_json())


def test_missing_labels_and_images_are_refused() -> None:
    data = quadrant_data(8, 0)
    with pytest.raises(ScaeError, match="no labels"):
        evaluate_images(Quadrants(), Data(data.images, None))
    with pytest.raises(ScaeError, match="8 images but 7 labels"):
        evaluate_images(Quadrants(), Data(data.images, data.labels[:7]))
    with pytest.raises(ScaeError, match="no images"):
        presences(Quadrants(), data.images[:0])


def test_constellations() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=(50, 6))
    presence = rng.integers(2, size=(50, 6)).astype(np.float32)
    presence[0] = 0
    points = rng.random((50, 6, 2)).astype(np.float32) - 0.5
    points[..., 0] = np.where(labels == 1, 1, -1) * (0.1 + rng.random((50, 6)))
    result = evaluate_constellations(Quadrants(), points, presence, labels, capsules=2, batch=7)
    assert result.segmentation_error == 0
    assert result.ari == 1
    assert result.n_scenes + result.n_empty_scenes == 50
    assert result.n_points == presence.sum()
    assert 0 < result.baselines["single capsule"]["segmentation_error"] < 0.5
    assert 0 < result.baselines["chance"]["segmentation_error"] < 0.5
    read = json.loads(result.to_json())
    assert read["segmentation_error"] == 0
    assert "Hungarian" in read["convention"]


def test_real_models_fit_the_interface() -> None:
    config = StackedConfig(
        image_size=(32, 32), parts=3, objects=4, cnn_channels=(4, 4, 4, 4), template_size=5
    )
    data = Data(quadrant_data(8, 0).images.repeat(4, 2).repeat(4, 3), np.arange(8) % 2)
    result = evaluate_images(models.build(config), data, data, baselines=False)
    assert set(result.lin_match.posterior) == {"train-test", "full"}
    model = models.build(ConstellationConfig())
    labels = torch.arange(5).repeat(3, 1) // 3
    points = torch.rand(3, 5, 2, generator=torch.Generator().manual_seed(0))
    scores = evaluate_constellations(model, points, torch.ones(3, 5), labels, capsules=3)
    assert scores.n_points == 15
    optimizer = build_optimizer(model, OptimizerConfig(), batch=3)
    assert [group["name"] for group in optimizer.param_groups] == ["objects"]
