"""Objects of point sets, learned without labels."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data
from torch import Tensor

from scae.api.points import scene_batch
from scae.config import ConstellationDataConfig, ConstellationExperiment
from scae.data import PointBatches, Scenes, read_points
from scae.errors import ScaeError
from scae.estimator.base import Estimator

BATCH, EPOCHS, MIN_STEPS, MAX_STEPS = 128, 200, 5_000, 60_000


class ConstellationSegmenter(Estimator):
    """Finds which points of a scene belong together, by a Constellation Capsule Autoencoder.

    X is an (S, N, 2) array of S scenes, in which points that are not there are NaN, the same
    as (S, 2 N) rows x1, y1, x2, y2, ..., a list of (n, 2) arrays of different lengths, a data
    frame with the columns scene, x and y, or a CSV or .npz file of points. Labels are never
    used.

    Parameters
    ----------
    n_clusters : int, default=None
        Object capsules K, the most objects that a scene may hold. None: 3.
    n_points : int, default=None
        Most points an object has. None: 4.
    steps, batch_size : int, default=None
        Weight updates and scenes per update. None: 200 passes over the scenes, from 5 000 to
        60 000 updates; 128 scenes, or all if there are fewer.
    experiment : ConstellationExperiment, default=None
        Every other choice; the parameters above go before it. None: preset "constellation".
    random_state : int, RandomState or None, default=None
        Seed of weights, batches and noise.
    device : str, default="auto"
        Where to train and predict; "auto" is a GPU if there is one.
    verbose : int, default=0
        1 shows the progress of training.

    Attributes
    ----------
    model_ : PointCapsules
        The trained model: `model_.explain(points)`, `model_.segment(points)`.
    labels_ : array (S, N)
        Objects of the points given to `fit`, -1 for absent ones.
    n_iter_, experiment_
        Weight updates, and the full configuration.
    """

    _learned = ("n_iter_", "n_features_in_")

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        n_points: int | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        experiment: ConstellationExperiment | None = None,
        random_state: Any = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_points = n_points
        self.steps = steps
        self.batch_size = batch_size
        self.experiment = experiment
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> "ConstellationSegmenter":
        """Train on scenes; `y` is ignored."""
        points, presence = self._read(X, reset=True)
        experiment = self._configure(len(points))
        scenes = Scenes(points, presence, None, "X")
        self._train(experiment, PointBatches(scenes, experiment.training.seed))
        self.labels_ = self._exact.segment(points, presence).numpy()
        return self

    def fit_predict(self, X: Any, y: Any = None) -> Int[np.ndarray, "scenes points"]:
        """`labels_` of a fit to X."""
        return self.fit(X).labels_

    def predict(self, X: Any) -> Int[np.ndarray, "scenes points"]:
        """Object of every point, -1 for absent ones."""
        found: np.ndarray = self._exact.segment(*self._read(X)).numpy()
        return found

    def transform(self, X: Any) -> Float[np.ndarray, "scenes objects"]:
        """Prior presence of every object in each scene, from 0 to 1."""
        found: np.ndarray = self._exact.presences(*self._read(X)).prior.numpy()
        return found

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of a scene, in nats; higher is better, `y` is ignored."""
        return float(self._exact.log_likelihood(*self._read(X)).mean())

    def _configure(self, count: int) -> ConstellationExperiment:
        from scae.presets import preset, recipe

        chosen = self.experiment
        if chosen is None:
            found = preset("constellation")
            assert isinstance(found, ConstellationExperiment)
            steps = min(MAX_STEPS, max(MIN_STEPS, EPOCHS * count // min(BATCH, count)))
            chosen = replace(
                found,
                data=ConstellationDataConfig(name="X"),
                optimizer=recipe.short(recipe.POINTS, self.steps or steps),
                training=replace(found.training, steps=steps, batch=BATCH),
            )
        model = replace(
            chosen.model,
            objects=self.n_clusters or chosen.model.objects,
            votes=self.n_points or chosen.model.votes,
        )
        return replace(chosen, model=model, training=self._training(chosen.training, count))

    def _read(self, X: Any, reset: bool = False) -> tuple[Tensor, Tensor]:
        """Points and presences of X; absent points are NaN."""
        if isinstance(X, str | Path):
            found = read_points(X)
            return scene_batch(found.points, found.presence)
        if {"scene", "x", "y"} <= set(getattr(X, "columns", ())):
            groups = X.groupby("scene")[["x", "y"]]
            X = [group.to_numpy() for _, group in groups]
        if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2:
            points = _padded([np.asarray(scene, np.float64) for scene in X])
        elif not hasattr(X, "columns") and (array := np.asarray(X)).ndim == 3:
            points = array.astype(np.float64)
        else:
            rows = validate_data(self, X, reset=reset, ensure_all_finite="allow-nan")
            points = _from_rows(rows.astype(np.float64))
        return scene_batch(points, ~np.isnan(points).any(-1))


def _padded(scenes: list[np.ndarray]) -> Float[np.ndarray, "scenes points 2"]:
    """Scenes of different lengths side by side, padded with NaN."""
    bad = next((s.shape for s in scenes if s.ndim != 2 or s.shape[1] != 2), None)
    if bad is not None:
        raise ScaeError(f"X has a scene of shape {bad}; expected (points, 2).")
    padded = np.full((len(scenes), max(map(len, scenes)), 2), np.nan)
    for row, scene in zip(padded, scenes, strict=True):
        row[: len(scene)] = scene
    return padded


def _from_rows(rows: Float[np.ndarray, "scenes numbers"]) -> Float[np.ndarray, "scenes points 2"]:
    """Points of rows x1, y1, x2, y2, ...; a last y that is missing is 0."""
    count, numbers = rows.shape
    if numbers % 2:
        warnings.warn(
            f"X has {numbers} features, an odd number: the last point of each row gets y = 0; "
            "give rows of x1, y1, x2, y2, ... or an array of shape (scenes, points, 2).",
            stacklevel=2,
        )
        rows = np.pad(rows, ((0, 0), (0, 1)))
    return rows.reshape(count, -1, 2)
