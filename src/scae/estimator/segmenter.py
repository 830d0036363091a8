"""Objects of point sets, learned without labels."""

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from scae.api.points import scene_batch
from scae.config import ConstellationExperiment
from scae.data import PointBatches, Scenes, read_points
from scae.data.images import as_tensor
from scae.errors import ScaeError
from scae.estimator.base import Estimator
from scae.presets import preset


@dataclass(eq=False, repr=False)
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
    steps : int, default=None
        Weight updates. None: as the preset "constellation".
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

    n_clusters: int | None = None
    _: KW_ONLY
    n_points: int | None = None
    experiment: ConstellationExperiment | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> "ConstellationSegmenter":
        """Train on scenes; `y` is ignored."""
        points, presence = self._read(X, reset=True)
        experiment = self._configure(
            self.experiment or preset("constellation"),
            len(points),
            objects=self.n_clusters,
            votes=self.n_points,
        )
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

    def _read(self, X: Any, reset: bool = False) -> tuple[Tensor, ...]:
        """Points and presences of X, in which absent points are NaN."""
        if isinstance(X, str | Path):
            found = read_points(X)
            return scene_batch(found.points, found.presence)
        if {"scene", "x", "y"} <= set(getattr(X, "columns", ())):
            groups = X.groupby("scene")[["x", "y"]]
            X = [group.to_numpy() for _, group in groups]
        if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2:
            scenes = [as_tensor(scene, "a scene of X").double() for scene in X]
            bad = next((scene.shape for scene in scenes if scene.shape[1:] != (2,)), None)
            if bad is not None:
                raise ScaeError(f"X has a scene of shape {tuple(bad)}; expected (points, 2).")
            points = pad_sequence(scenes, batch_first=True, padding_value=math.nan)
        elif not hasattr(X, "columns") and (array := np.asarray(X)).ndim == 3:
            points = as_tensor(array, "X").double()
        else:
            rows = validate_data(self, X, reset=reset, ensure_all_finite="allow-nan")
            points = as_tensor(_from_rows(rows)).double()
        return scene_batch(points, ~points.isnan().any(-1))


def _from_rows(rows: Shaped[np.ndarray, "scenes numbers"]) -> Shaped[np.ndarray, "scenes points 2"]:
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
