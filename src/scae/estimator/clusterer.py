"""Clusters of images, learned without labels."""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from scae.api import ImageCapsules
from scae.config import ImageExperiment
from scae.data.interface import ImageData, ImageSource
from scae.errors import ScaeError
from scae.estimator.common import Storage, choose_device, draw_seed, speaks_sklearn
from scae.estimator.pixels import Shape, read_images, shape_of

DEFAULT_CLUSTERS = 10


class CapsuleClusterer(
    Storage, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Clusters images by the objects that a Stacked Capsule Autoencoder sees in them.

    `fit` trains the autoencoder on X and then k-means on the objects' presences; labels are
    never used. X is (N, H, W), (N, H, W, C), (N, C, H, W) or flat rows with `image_shape`,
    in bytes or floats from 0 to 1.

    Parameters
    ----------
    n_clusters : int, default=None
        Clusters of `predict`; also the number of classes C in the sparsity targets K/C and
        B/C of the loss, and 2.4 object capsules are made per cluster. None: 10, or one per
        two images when there are fewer than 20.
    image_shape : tuple, default=None
        (height, width) or (height, width, channels) of flat rows.
    n_parts, n_objects : int, default=None
        Part and object capsules. None: 24, and 2.4 per cluster but at least 8.
    steps : int, default=None
        Weight updates. None: 60 passes over the images, from 4 000 to 22 000 updates.
    batch_size : int, default=None
        Images per update. None: 32, or all if there are fewer.
    experiment : ImageExperiment, default=None
        Every other choice (`scae.preset("mnist")`, say); image size, channels and classes are
        filled in from X and `n_clusters`, and the parameters above go before it.
    warm_start : bool, default=False
        Begin `fit` with the weights of the last one, which must be of the same sizes.
    random_state : int, RandomState or None, default=None
        Seed of weights, batches, noise and k-means.
    device : str, default="auto"
        Where to train and predict: "cpu", "cuda", ...; "auto" is a GPU if there is one.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    model_ : ImageCapsules
        The trained model: `model_.explain(images)`, `model_.render(...)`.
    cluster_centers_ : array (n_clusters, n_objects)
        k-means centres in the space of presences.
    labels_ : array (N,)
        Clusters of the images given to `fit`.
    n_clusters_, n_iter_, image_shape_, experiment_
        Clusters, updates made (over warm starts), (C, H, W), and the full configuration.
    """

    _LEARNED = ("cluster_centers_", "n_clusters_", "n_iter_", "image_shape_", "n_features_in_")

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        image_shape: Any = None,
        n_parts: int | None = None,
        n_objects: int | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        experiment: ImageExperiment | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.image_shape = image_shape
        self.n_parts = n_parts
        self.n_objects = n_objects
        self.steps = steps
        self.batch_size = batch_size
        self.experiment = experiment
        self.warm_start = warm_start
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @speaks_sklearn
    def fit(self, X: Any, y: Any = None) -> "CapsuleClusterer":
        """Train on images; `y` is ignored."""
        from scae.estimator.fitting import fit_in_memory
        from scae.evaluation.clustering import fit_kmeans

        images = self._read(X, reset=True)
        seed = draw_seed(self.random_state)
        experiment = self._configure(images, seed)
        start, done = self._start(experiment)
        model = fit_in_memory(
            experiment,
            ImageSource(images, seed),
            choose_device(self.device),
            start,
            progress=bool(self.verbose),
        )
        assert model.config == experiment.model
        self.experiment_ = experiment
        self.model_ = ImageCapsules(model, experiment)
        self.n_clusters_ = experiment.model.classes
        self.n_iter_ = done + experiment.training.steps
        presences = self._presences(images)
        kmeans = fit_kmeans(presences, self.n_clusters_, seed=seed)
        self.cluster_centers_ = kmeans.cluster_centers_
        self.labels_ = self._assign(presences)
        return self

    @speaks_sklearn
    def predict(self, X: Any) -> Int[np.ndarray, " n"]:
        """Cluster of each image: the nearest centre to its presences."""
        return self._assign(self._presences(self._read(X, reset=False)))

    @speaks_sklearn
    def transform(self, X: Any) -> Float[np.ndarray, "n objects"]:
        """Prior presence of every object in each image, from 0 to 1."""
        return self._presences(self._read(X, reset=False))

    @speaks_sklearn
    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the images and their parts, in nats; `y` is ignored.

        Higher is better; comparable between models of the same image size and pixel sigma. It
        says how well images are drawn, which need not rank models by their clusters.
        """
        images = self._read(X, reset=False)
        return float(self.model_.log_likelihood(images.images.numpy()).mean())

    @property
    def _n_features_out(self) -> int:
        return int(self.model_.model.config.objects)

    def _read(self, X: Any, reset: bool) -> ImageData:
        if not reset:
            check_is_fitted(self)
        shape = shape_of(self.image_shape)
        if shape is None and not reset:
            shape = self.image_shape_
        images, found = read_images(self, X, shape, reset)
        self._take_shape(found, reset)
        return images

    def _take_shape(self, shape: Shape, reset: bool) -> None:
        if reset:
            self.image_shape_ = shape
        elif shape != tuple(self.image_shape_):
            channels, height, width = self.image_shape_
            raise ScaeError(
                f"X holds {shape[1]}x{shape[2]} images with {shape[0]} channels, but the "
                f"estimator was fitted on {height}x{width} with {channels}."
            )

    def _configure(self, images: ImageData, seed: int) -> ImageExperiment:
        from scae.presets import for_images

        count, channels, height, width = images.images.shape
        clusters = self.n_clusters or min(DEFAULT_CLUSTERS, max(1, count // 2))
        if clusters > count:
            raise ScaeError(f"n_clusters={clusters} needs at least as many images, not {count}.")
        chosen = self.experiment
        if chosen is None:
            chosen = for_images(height, width, channels, clusters, count, "X")
        model = replace(
            chosen.model,
            image_size=(height, width),
            channels=channels,
            classes=clusters,
            parts=self.n_parts or chosen.model.parts,
            objects=self.n_objects or chosen.model.objects,
        )
        training = replace(
            chosen.training,
            seed=seed,
            steps=self.steps or chosen.training.steps,
            batch=min(self.batch_size or chosen.training.batch, count),
        )
        warmup = min(chosen.optimizer.warmup, max(1, training.steps // 10))
        optimizer = replace(chosen.optimizer, warmup=warmup)
        whole = replace(chosen, model=model, training=training, optimizer=optimizer)
        assert isinstance(whole, ImageExperiment)
        return whole

    def _start(self, experiment: ImageExperiment) -> tuple[Any, int]:
        """Weights to begin with and the updates they have seen."""
        if not self.warm_start or not hasattr(self, "model_"):
            return None, 0
        before = self.model_.model.config
        if replace(before, classes=experiment.model.classes) != experiment.model:
            raise ScaeError(
                "warm_start needs the image size and the numbers of capsules of the last fit; "
                "set warm_start=False to start anew."
            )
        return self.model_.model.state_dict(), self.n_iter_

    def _presences(self, images: ImageData) -> Float[np.ndarray, "n objects"]:
        found: np.ndarray = self.model_.presences(images.images.numpy()).prior
        return found

    def _assign(self, presences: Float[np.ndarray, "n objects"]) -> Int[np.ndarray, " n"]:
        centers = self.cluster_centers_.astype(presences.dtype, copy=False)
        nearest: np.ndarray = pairwise_distances_argmin(presences, centers)
        return nearest
