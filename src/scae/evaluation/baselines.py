"""What clustering reaches without a model: k-means on pixels, and on their leading PCA scores."""

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.decomposition import PCA
from torch import Tensor

from scae.evaluation.clustering import (
    Protocol,
    assign_clusters,
    fit_kmeans,
    lin_match,
    score_clusters,
)
from scae.evaluation.inference import Images
from scae.evaluation.matching import match_clusters

Labels = Int[np.ndarray, " _"]

COMPONENTS = 50
"""Principal components kept."""
FIT_IMAGES = 20_000
"""At most this many images, drawn at random, fit the principal axes and the pixel clusters."""
PIXEL_RESTARTS = 3
"""k-means starts on pixels, where one costs as much as dozens on presences."""
_CHUNK = 5000


def pixels(images: Images) -> Float[np.ndarray, "n pixels"]:
    """Rows of float32 pixels in [0, 1]."""
    array = images.cpu().numpy() if isinstance(images, Tensor) else images
    flat = array.reshape(len(array), -1)  # (N, C * H * W)
    if flat.dtype == np.uint8:
        return flat.astype(np.float32) / np.float32(255)
    return flat.astype(np.float32, copy=False)


def pixel_baselines(
    train: tuple[Images, Labels],
    test: tuple[Images, Labels] | None,
    clusters: int,
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """LIN-MATCH of both baselines under every protocol the data allow."""
    protocols: list[Protocol] = ["full"] if test is None else ["train-test", "full"]
    images, labels = train
    axes = _fit_pca(images, seed)
    train_scores = (_project(axes, images), labels)
    test_scores = None if test is None else (_project(axes, test[0]), test[1])
    return {
        "k-means on pixels": {
            protocol: _pixel_kmeans(protocol, train, test, clusters, seed) for protocol in protocols
        },
        "PCA + k-means": {
            protocol: lin_match(protocol, train_scores, test_scores, clusters, seed=seed).accuracy
            for protocol in protocols
        },
    }


def _chosen(images: Images, seed: int) -> Images:
    if len(images) <= FIT_IMAGES:
        return images
    rows = np.sort(np.random.default_rng(seed).permutation(len(images))[:FIT_IMAGES])
    return images[torch.from_numpy(rows)] if isinstance(images, Tensor) else images[rows]


def _fit_pca(images: Images, seed: int) -> PCA:
    rows = pixels(_chosen(images, seed))
    return PCA(min(COMPONENTS, *rows.shape), svd_solver="covariance_eigh").fit(rows)


def _project(axes: PCA, images: Images) -> Float[np.ndarray, "n components"]:
    chunks = range(0, len(images), _CHUNK)
    return np.concatenate([axes.transform(pixels(images[i : i + _CHUNK])) for i in chunks])


def _pixel_kmeans(
    protocol: Protocol,
    train: tuple[Images, Labels],
    test: tuple[Images, Labels] | None,
    clusters: int,
    seed: int,
) -> float:
    if protocol == "full" and test is not None:
        sources, labels = [train[0], test[0]], np.concatenate([train[1], test[1]])
    else:
        sources, labels = [train[0]], train[1]
    fit = np.concatenate([pixels(_chosen(source, seed)) for source in sources])
    kmeans = fit_kmeans(fit, clusters, PIXEL_RESTARTS, seed)

    def assign(images: Images) -> Labels:
        chunks = range(0, len(images), _CHUNK)
        return np.concatenate(
            [assign_clusters(kmeans, pixels(images[i : i + _CHUNK])) for i in chunks]
        )

    assigned = np.concatenate([assign(source) for source in sources])
    mapping = match_clusters(assigned, labels)
    if protocol == "train-test" and test is not None:
        return score_clusters(assign(test[0]), test[1], mapping).accuracy
    return score_clusters(assigned, labels, mapping).accuracy
