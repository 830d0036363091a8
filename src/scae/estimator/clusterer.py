"""Clusters of images, learned without labels."""

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int
from sklearn.base import ClusterMixin
from sklearn.utils.validation import validate_data
from torch import Tensor

from scae.config import ImageExperiment
from scae.data import ImageBatches, ImageData, from_arrays
from scae.data.images import SLACK, image_array
from scae.errors import ScaeError
from scae.estimator.base import Estimator
from scae.evaluation import fit_kmeans
from scae.prediction import assign_clusters, read_files, write_clusters
from scae.presets import for_images

DEFAULT_CLUSTERS = 10
# Flat rows of fewer pixels are padded: the part encoder needs some room.
MIN_SIDE = 8


@dataclass(eq=False, repr=False)
class CapsuleClusterer(ClusterMixin, Estimator):
    """Clusters images by the objects that a Stacked Capsule Autoencoder sees in them.

    `fit` trains the autoencoder on X and then k-means on the objects' presences; labels are
    never used. X is (N, H, W), (N, H, W, C), (N, C, H, W), a list of image files, or flat rows
    (arrays or data frames), in bytes or floats from 0 to 1; of other numbers, the range in
    `fit` is taken for black to white.

    Parameters
    ----------
    n_clusters : int, default=None
        Clusters, which are also the classes of the sparsity targets K/C and B/C of the loss.
        None: 10, or one per two images when there are fewer than 20.
    image_shape : tuple, default=None
        (height, width) or (height, width, channels) of flat rows. None: squares.
    n_parts, n_objects : int, default=None
        Part and object capsules. None: as `scae.presets.for_images` chooses.
    steps : int, default=None
        Weight updates. None: as `scae.presets.for_images` chooses.
    experiment : ImageExperiment, default=None
        Every other choice (`scae.preset("mnist")`, say); the parameters above go before it.
    random_state : int, RandomState or None, default=None
        Seed of weights, batches, noise and k-means.
    device : str, default="auto"
        "cpu", "cuda", ...; "auto" is a GPU if there is one.
    verbose : int, default=0
        1 shows the progress of training.

    Attributes
    ----------
    model_ : ImageCapsules
        The trained model: `model_.explain(images)`, `model_.render(...)`.
    cluster_centers_ : array (n_clusters, n_objects)
        k-means centres in the space of presences.
    labels_ : array (N,)
        Clusters of the images given to `fit`.
    n_iter_, image_shape_, pixel_range_, experiment_
        Weight updates, (C, H, W), the numbers taken for black and white (None: bytes or floats
        from 0 to 1), and the full configuration.
    """

    n_clusters: int | None = None
    _: KW_ONLY
    image_shape: Any = None
    n_parts: int | None = None
    n_objects: int | None = None
    experiment: ImageExperiment | None = None

    def fit(self, X: Any, y: Any = None) -> "CapsuleClusterer":
        """Train on images; `y` is ignored."""
        (images,) = self._read(X, reset=True)
        count, channels, height, width = images.shape
        clusters = self.n_clusters or min(DEFAULT_CLUSTERS, max(1, count // 2))
        experiment = self._configure(
            self.experiment or for_images(height, width, channels, clusters, count, "X"),
            count,
            image_size=(height, width),
            channels=channels,
            classes=clusters,
            parts=self.n_parts,
            objects=self.n_objects,
        )
        seed = experiment.training.seed
        self._train(experiment, ImageBatches(ImageData(images, None, "X", "all"), seed))
        prior = self._exact.presences(images).prior.numpy()
        self.cluster_centers_ = fit_kmeans(prior, clusters, seed).cluster_centers_
        self.labels_ = assign_clusters(prior, self.cluster_centers_)
        return self

    def predict(self, X: Any) -> Int[np.ndarray, " n"]:
        """Cluster of each image: the nearest centre to its presences."""
        return assign_clusters(self.transform(X), self.cluster_centers_)

    def save(self, folder: str | Path) -> None:
        """Write the trained model and its clusters where `scae.load` and `scae predict` find them.

        To keep the estimator itself, pickle it.
        """
        super().save(folder)
        write_clusters(Path(folder), self.cluster_centers_)

    def _read(self, X: Any, reset: bool = False) -> tuple[Tensor, ...]:
        """Images of X as bytes; with `reset`, what `fit` learns about them is kept.

        Scikit-learn's own checks (numbers only, finite, as many features as in `fit`) are made
        on flat rows. Floats are rounded to 256 levels, in training and prediction alike.
        """
        listed = isinstance(X, list | tuple) or getattr(X, "ndim", 0) == 1
        if listed and isinstance(next(iter(X), None), str | Path):
            X = read_files(list(X)).images
        layout, flat = None, X
        if not hasattr(X, "columns") and (array := np.asarray(X)).ndim > 2:
            layout, flat = array.shape, array.reshape(len(array), -1)
        flat = validate_data(self, flat, reset=reset, ensure_min_samples=2 if reset else 1)
        if reset:
            self.pixel_range_ = _pixel_range(flat)
        if self.pixel_range_ is not None:
            low, high = self.pixel_range_
            flat = ((flat.astype(np.float64) - low) / (high - low)).clip(0, 1)
        images = flat.reshape(layout) if layout else _from_rows(flat, self.image_shape)
        if not reset:
            channels, height, width = self.image_shape_
            images = image_array(images, "X", channels, (height, width))
        data = from_arrays(images, name="X").images
        if reset:
            self.image_shape_: tuple[int, ...] = tuple(data.shape[1:])
        return (data,)


def _pixel_range(flat: np.ndarray) -> tuple[float, float] | None:
    """None for bytes and floats from 0 to 1; of other numbers, their range is black to white."""
    low, high = float(flat.min()), float(flat.max())
    top = 1 + SLACK if flat.dtype.kind == "f" else 255
    if flat.dtype.kind == "b" or (low >= -SLACK and high <= top):
        return None
    return low, high if high > low else low + 1


def _from_rows(flat: np.ndarray, image_shape: Any) -> np.ndarray:
    """Flat rows as images of `image_shape`, (height, width[, channels]), or as squares."""
    count, features = flat.shape
    if image_shape is not None:
        if len(image_shape) not in (2, 3) or math.prod(image_shape) != features:
            raise ScaeError(
                f"X has {features} features and image_shape is {image_shape}; expected (height, "
                "width[, channels]) with that product."
            )
        return flat.reshape(count, *image_shape)
    side = math.isqrt(features - 1) + 1
    if side * side != features:
        warnings.warn(
            f"X has {features} features, which are no square image: they are read as the first "
            f"pixels of {side}x{side} ones; give image_shape=(height, width[, channels]).",
            stacklevel=2,
        )
    square = np.pad(flat, ((0, 0), (0, side * side - features))).reshape(count, side, side)
    pad = max(0, MIN_SIDE - side)
    edges = (pad // 2, pad - pad // 2)
    return np.pad(square, ((0, 0), edges, edges))
