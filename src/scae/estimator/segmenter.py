"""Objects of point sets, learned without labels."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from scae.api import PointCapsules
from scae.api.inputs import scene_batch
from scae.config import ConstellationDataConfig, ConstellationExperiment, TrainingConfig
from scae.data.points import PointSource, Scenes
from scae.errors import ScaeError
from scae.estimator.common import Storage, choose_device, draw_seed, speaks_sklearn

DEFAULT_OBJECTS, DEFAULT_VOTES = 3, 4
CLASSES = 2
"""C of the sparsity targets: every object is expected in one of two scenes, as released."""
EPOCHS, FEWEST_STEPS, MOST_STEPS = 200, 5_000, 60_000


class ConstellationSegmenter(
    Storage, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Finds which points of a scene belong together, by a Constellation Capsule Autoencoder.

    X is an (S, N, 2) array of S scenes, in which points that are not there are NaN, or a list
    of (n, 2) arrays of different lengths. Labels are never used.

    Parameters
    ----------
    n_clusters : int, default=None
        Object capsules K, the most objects that a scene may hold. None: 3.
    n_points : int, default=None
        Most points an object has. None: 4.
    normalise : {"scene", None}, default="scene"
        Map every scene to [-1, 1]^2 by its own range; None: points are in it already.
    steps, batch_size : int, default=None
        Weight updates and scenes per update. None: 200 passes over the scenes, from 5 000 to
        60 000 updates; 128 scenes, or all if there are fewer.
    experiment : ConstellationExperiment, default=None
        Every other choice; the parameters above go before it. None: preset "constellation".
    warm_start : bool, default=False
        Begin `fit` with the weights of the last one.
    random_state : int, RandomState or None, default=None
        Seed of weights, batches and noise.
    device : str, default="auto"
        Where to train and predict; "auto" is a GPU if there is one.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    model_ : PointCapsules
        The trained model: `model_.explain(points)`, `model_.segment(points)`.
    labels_ : array (S, N)
        Objects of the points given to `fit`, -1 for absent ones.
    n_iter_, experiment_
        Updates made (over warm starts), and the full configuration.
    """

    _LEARNED = ("n_iter_",)

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        n_points: int | None = None,
        normalise: str | None = "scene",
        steps: int | None = None,
        batch_size: int | None = None,
        experiment: ConstellationExperiment | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_points = n_points
        self.normalise = normalise
        self.steps = steps
        self.batch_size = batch_size
        self.experiment = experiment
        self.warm_start = warm_start
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @speaks_sklearn
    def fit(self, X: Any, y: Any = None) -> "ConstellationSegmenter":
        """Train on scenes; `y` is ignored."""
        from scae.estimator.fitting import fit_in_memory

        scenes = self._read(X)
        seed = draw_seed(self.random_state)
        experiment = self._configure(len(scenes), seed)
        start, done = None, 0
        if self.warm_start and hasattr(self, "model_"):
            if self.model_.model.config != experiment.model:
                raise ScaeError(
                    "warm_start needs the numbers of objects and points of the last fit; set "
                    "warm_start=False to start anew."
                )
            start, done = self.model_.model.state_dict(), self.n_iter_
        model = fit_in_memory(
            experiment,
            PointSource(scenes, seed),
            choose_device(self.device),
            start,
            progress=bool(self.verbose),
        )
        self.experiment_ = experiment
        self.model_ = PointCapsules(model, experiment)  # type: ignore[arg-type]
        self.n_iter_ = done + experiment.training.steps
        self.labels_ = self._segment(scenes, mark_dummy=False)
        return self

    @speaks_sklearn
    def predict(self, X: Any, mark_dummy: bool = False) -> Int[np.ndarray, "scenes points"]:
        """Object of every point, -1 for absent ones; with `mark_dummy` also for points that
        only the dummy component explains."""
        check_is_fitted(self)
        return self._segment(self._read(X), mark_dummy)

    @speaks_sklearn
    def transform(self, X: Any) -> Float[np.ndarray, "scenes objects"]:
        """Prior presence of every object in each scene, from 0 to 1."""
        check_is_fitted(self)
        scenes = self._read(X)
        found: np.ndarray = self.model_.presences(scenes.points, scenes.presence).prior.numpy()
        return found

    @speaks_sklearn
    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of a scene, in nats; higher is better, `y` is ignored."""
        check_is_fitted(self)
        scenes = self._read(X)
        return float(self.model_.log_likelihood(scenes.points, scenes.presence).mean())

    @property
    def _n_features_out(self) -> int:
        return int(self.model_.model.config.objects)

    def _segment(self, scenes: Scenes, mark_dummy: bool) -> Int[np.ndarray, "scenes points"]:
        found: np.ndarray = self.model_.segment(
            scenes.points, scenes.presence, mark_dummy=mark_dummy
        ).numpy()
        return found

    def _read(self, X: Any) -> Scenes:
        if self.normalise not in ("scene", None):
            raise ScaeError(f"normalise is {self.normalise!r}; expected 'scene' or None.")
        points = _padded(X)
        presence = (~np.isnan(points).any(-1)).astype(np.float32)
        if not presence.any(-1).all():
            raise ScaeError("X has a scene without any points; leave it out.")
        normalised = scene_batch(points, presence, self.normalise)  # type: ignore[arg-type]
        return Scenes(*normalised, None, "X")

    def _configure(self, count: int, seed: int) -> ConstellationExperiment:
        from scae.presets import preset, recipe

        chosen = self.experiment
        if chosen is None:
            found = preset("constellation")
            assert isinstance(found, ConstellationExperiment)
            batch = min(128, count)
            steps = min(MOST_STEPS, max(FEWEST_STEPS, EPOCHS * count // batch))
            model = replace(
                found.model, objects=DEFAULT_OBJECTS, votes=DEFAULT_VOTES, classes=CLASSES
            )
            chosen = replace(
                found,
                model=model,
                data=ConstellationDataConfig(name="X"),
                optimizer=recipe.short(recipe.POINTS, self.steps or steps),
                training=TrainingConfig(steps=steps, batch=batch),
            )
        model = replace(
            chosen.model,
            objects=self.n_clusters or chosen.model.objects,
            votes=self.n_points or chosen.model.votes,
        )
        training = replace(
            chosen.training,
            seed=seed,
            steps=self.steps or chosen.training.steps,
            batch=min(self.batch_size or chosen.training.batch, count),
        )
        # Without a range of their own, scenes are seen as they are: one range for all.
        data = replace(chosen.data, normalise="scene" if self.normalise else "global")
        return replace(chosen, model=model, data=data, training=training)


def _padded(X: Any) -> Float[np.ndarray, "scenes points 2"]:
    """Scenes of different lengths side by side, padded with NaN."""
    if isinstance(X, torch.Tensor | np.ndarray):
        array = np.asarray(X)
        if array.dtype.kind not in "biuf" or array.ndim != 3 or array.shape[2] != 2:
            raise ScaeError(
                f"X has shape {array.shape} and holds {array.dtype}; expected numbers of shape "
                "(scenes, points, 2), or a list of (points, 2) arrays."
            )
        padded = array.astype(np.float32)
    else:
        scenes = [np.asarray(scene, dtype=np.float32) for scene in X]
        bad = next((s.shape for s in scenes if s.ndim != 2 or s.shape[1] != 2), None)
        if bad is not None:
            raise ScaeError(f"X has a scene of shape {bad}; expected (points, 2).")
        longest = max((len(scene) for scene in scenes), default=0)
        padded = np.full((len(scenes), longest, 2), np.nan, np.float32)
        for row, scene in zip(padded, scenes, strict=True):
            row[: len(scene)] = scene
    if 0 in padded.shape:
        raise ScaeError(f"X is empty (shape {padded.shape}); give at least one scene of a point.")
    return padded
