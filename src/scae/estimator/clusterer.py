"""Clusters of images, learned without labels."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils.validation import check_is_fitted

from scae.config import ImageExperiment
from scae.data import ImageBatches, ImageData
from scae.errors import ScaeError
from scae.estimator.base import Estimator, value_errors
from scae.estimator.reading import read_images
from scae.evaluation import fit_kmeans, presences
from scae.prediction import assign_clusters, read_clusters, write_clusters

DEFAULT_CLUSTERS = 10


class CapsuleClusterer(Estimator):
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
        Part and object capsules. None: 24, and 2.4 per cluster but at least 8.
    steps, batch_size : int, default=None
        Weight updates and images per update. None: as `scae.presets.images` chooses.
    experiment : ImageExperiment, default=None
        Every other choice (`scae.preset("mnist")`, say); the parameters above go before it.
    warm_start : bool, default=False
        Begin `fit` with the weights of the last one, which must be of the same sizes.
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
    n_clusters_, n_iter_, image_shape_, pixel_range_, experiment_
        Clusters, updates over all warm starts, (C, H, W), the numbers taken for black and
        white (None: bytes or floats from 0 to 1), and the full configuration.
    """

    _learned = ("n_clusters_", "n_iter_", "image_shape_", "pixel_range_", "n_features_in_")

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

    @value_errors
    def fit(self, X: Any, y: Any = None) -> "CapsuleClusterer":
        """Train on images; `y` is ignored."""
        images = read_images(self, X, reset=True)
        seed = self._seed()
        experiment = self._configure(images, seed)
        self._train(experiment, ImageBatches(images, seed, None, 0))
        self.n_clusters_ = experiment.model.classes
        prior = self._presences(images)
        self.cluster_centers_ = fit_kmeans(prior, self.n_clusters_, seed).cluster_centers_
        self.labels_ = assign_clusters(prior, self.cluster_centers_)
        return self

    @value_errors
    def predict(self, X: Any) -> Int[np.ndarray, " n"]:
        """Cluster of each image: the nearest centre to its presences."""
        return assign_clusters(self.transform(X), self.cluster_centers_)

    @value_errors
    def transform(self, X: Any) -> Float[np.ndarray, "n objects"]:
        """Prior presence of every object in each image, from 0 to 1."""
        check_is_fitted(self)
        return self._presences(read_images(self, X, reset=False))

    @value_errors
    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the images and their parts, in nats; `y` is ignored.

        Higher is better; comparable between models of the same image size and pixel sigma. It
        says how well images are drawn, which need not rank models by their clusters.
        """
        check_is_fitted(self)
        images = read_images(self, X, reset=False)
        return float(self.model_.log_likelihood(images.images.numpy()).mean())

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator into a folder, its clusters included."""
        super().save(folder)
        write_clusters(Path(folder), self.cluster_centers_)

    @classmethod
    def load(cls, folder: str | Path) -> "CapsuleClusterer":
        """The fitted estimator that `save` wrote."""
        estimator = super().load(folder)
        centres = read_clusters(Path(folder))
        if centres is None:
            raise ScaeError(f"Folder {folder} holds no cluster centres; save the estimator again.")
        estimator.cluster_centers_ = centres
        return estimator

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
        training = self._training(chosen.training, count, seed)
        warmup = min(chosen.optimizer.warmup, max(1, training.steps // 10))
        optimizer = replace(chosen.optimizer, warmup=warmup)
        return replace(chosen, model=model, training=training, optimizer=optimizer)

    def _presences(self, images: ImageData) -> Float[np.ndarray, "n objects"]:
        """Prior presences in double precision: the same for an image in any batch."""
        prior, _ = presences(copy.deepcopy(self.model_.model).double(), images.images)
        return prior
