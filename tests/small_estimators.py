"""Estimators that fit in milliseconds, to test what scikit-learn asks of them."""

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from scae import CapsuleClusterer, ConstellationSegmenter
from scae.config import ConstellationExperiment, ImageExperiment, OptimizerConfig, TrainingConfig
from scae.data.interface import ImageData
from scae.estimator.common import speaks_sklearn
from scae.estimator.pixels import to_bytes, validated
from small_models import IMAGES, POINTS

TRAINING = TrainingConfig(steps=3, batch=8)
OPTIMIZER = OptimizerConfig(name="adam", lr=1e-3, average=0.9)
EXPERIMENT = ImageExperiment("test", "no paper", IMAGES, optimizer=OPTIMIZER, training=TRAINING)
SCENES = ConstellationExperiment(
    "test", "no paper", POINTS, optimizer=OPTIMIZER, training=replace(TRAINING, steps=4)
)
SIDE = 7


def clusterer(**parameters: Any) -> CapsuleClusterer:
    """A clusterer of a tiny model."""
    defaults = {"n_clusters": 2, "experiment": EXPERIMENT, "random_state": 0, "device": "cpu"}
    return CapsuleClusterer(**(defaults | parameters))


def segmenter(**parameters: Any) -> ConstellationSegmenter:
    """A segmenter of a tiny model."""
    defaults = {"experiment": SCENES, "random_state": 0, "device": "cpu"}
    return ConstellationSegmenter(**(defaults | parameters))


class FeatureClusterer(CapsuleClusterer):
    """The clusterer with any table of numbers as its images.

    Scikit-learn's checks come with tables of a few columns; here these are squashed to [0, 1]
    and become the first pixels of 7x7 images. Everything else is the estimator itself.
    """

    # One check sets nonsense, which our tests' type checks would refuse before it is stored.
    __init__ = inspect.unwrap(CapsuleClusterer.__init__)

    @speaks_sklearn
    def _read(self, X: Any, reset: bool) -> ImageData:
        if not reset:
            check_is_fitted(self)
        table = validated(self, X, reset).astype(np.float64)
        pixels = np.zeros((len(table), SIDE * SIDE), np.float32)
        columns = min(table.shape[1], SIDE * SIDE)
        pixels[:, :columns] = (table / (1 + table))[:, :columns]
        self._take_shape((1, SIDE, SIDE), reset)
        return to_bytes(pixels.reshape(-1, 1, SIDE, SIDE))

    def _presences(self, images: ImageData) -> np.ndarray:
        # Scikit-learn compares to a part in 1e7 what 32 bits hold to a part in 1.7e7.
        return super()._presences(images).round(5)
