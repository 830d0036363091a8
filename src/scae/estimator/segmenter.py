"""Objects of point sets, learned without labels."""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from scae.config import ConstellationDataConfig, ConstellationExperiment
from scae.data import PointBatches, Scenes
from scae.estimator.base import Estimator, value_errors
from scae.estimator.reading import read_scenes

BATCH, EPOCHS, MIN_STEPS, MAX_STEPS = 128, 200, 5_000, 60_000


class ConstellationSegmenter(Estimator):
    """Finds which points of a scene belong together, by a Constellation Capsule Autoencoder.

    X is an (S, N, 2) array of S scenes, in which points that are not there are NaN, a list of
    (n, 2) arrays of different lengths, a data frame with the columns scene, x and y, or a CSV
    or .npz file of points. Labels are never used.

    Parameters
    ----------
    n_clusters : int, default=None
        Object capsules K, the most objects that a scene may hold. None: 3.
    n_points : int, default=None
        Most points an object has. None: 4.
    normalise : bool, default=True
        Map every scene to [-1, 1]^2 by its own range; False: points are in it already.
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
        1 shows the progress of training.

    Attributes
    ----------
    model_ : PointCapsules
        The trained model: `model_.explain(points)`, `model_.segment(points)`.
    labels_ : array (S, N)
        Objects of the points given to `fit`, -1 for absent ones.
    n_iter_, experiment_
        Updates made (over warm starts), and the full configuration.
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        n_points: int | None = None,
        normalise: bool = True,
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
        tags.input_tags.allow_nan = True
        return tags

    @value_errors
    def fit(self, X: Any, y: Any = None) -> "ConstellationSegmenter":
        """Train on scenes; `y` is ignored."""
        scenes = read_scenes(X)
        seed = self._seed()
        self._train(self._configure(len(scenes), seed), PointBatches(scenes, seed))
        self.labels_ = self._segment(scenes, mark_dummy=False)
        return self

    @value_errors
    def predict(self, X: Any, mark_dummy: bool = False) -> Int[np.ndarray, "scenes points"]:
        """Object of every point, -1 for absent ones; with `mark_dummy` also for points that
        only the dummy component explains."""
        check_is_fitted(self)
        return self._segment(read_scenes(X), mark_dummy)

    @value_errors
    def transform(self, X: Any) -> Float[np.ndarray, "scenes objects"]:
        """Prior presence of every object in each scene, from 0 to 1."""
        check_is_fitted(self)
        scenes = read_scenes(X)
        return np.asarray(self.model_.presences(scenes.points, scenes.presence).prior)

    @value_errors
    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of a scene, in nats; higher is better, `y` is ignored."""
        check_is_fitted(self)
        scenes = read_scenes(X)
        return float(self.model_.log_likelihood(scenes.points, scenes.presence).mean())

    def _segment(self, scenes: Scenes, mark_dummy: bool) -> Int[np.ndarray, "scenes points"]:
        found = self.model_.segment(scenes.points, scenes.presence, mark_dummy)
        return np.asarray(found)

    def _configure(self, count: int, seed: int) -> ConstellationExperiment:
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
            normalise=self.normalise,
        )
        training = self._training(chosen.training, count, seed)
        return replace(chosen, model=model, training=training)
