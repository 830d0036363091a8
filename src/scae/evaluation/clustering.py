"""LIN-MATCH: k-means on presences, then the best one-to-one naming of clusters (section 3.2).

Two protocols, because published numbers mix them: ``train-test`` fits clusters and their names
on the training images and scores the test images; ``full``, the paper's, fits and scores on
all images together. The released code re-fits on whichever split it scores.
"""

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from scae.errors import ScaeError
from scae.evaluation.matching import apply_mapping, match_clusters

Protocol = Literal["train-test", "full"]

RESTARTS = 10
"""k-means starts, of which the one with the smallest within-cluster distance is kept."""
ITERATIONS = 100
"""Most Lloyd iterations of one start; separate clusters need a few dozen."""


@dataclass(frozen=True)
class ClusteringScores:
    """A clustering against labels: accuracy after one-to-one matching, NMI and ARI."""

    accuracy: float
    nmi: float
    ari: float
    confusion: list[list[int]]
    """Rows: true classes. Columns: matched classes, then one for clusters that match none."""


@dataclass(frozen=True)
class NamedClusters:
    """k-means clusters with the label each stands for."""

    kmeans: KMeans
    mapping: dict[int, int]

    def assign(self, features: Float[np.ndarray, "n features"]) -> Int[np.ndarray, " n"]:
        """Number of the nearest cluster centre."""
        return assign_clusters(self.kmeans, features)

    def score(
        self, features: Float[np.ndarray, "n features"], labels: Int[np.ndarray, " n"]
    ) -> ClusteringScores:
        """Scores under the mapping this object carries, which need not fit these labels."""
        return score_clusters(self.assign(features), labels, self.mapping)


def fit_kmeans(
    features: Float[np.ndarray, "n features"],
    clusters: int,
    restarts: int = RESTARTS,
    seed: int = 0,
) -> KMeans:
    """k-means with ``restarts`` starts; warns when the data hold fewer distinct points."""
    if clusters < 1 or clusters > len(features):
        raise ScaeError(
            f"{clusters} clusters were asked for with {len(features)} examples; ask for at "
            "least 1 and at most as many as there are examples."
        )
    if not np.isfinite(features).all():
        raise ScaeError(
            "The features to cluster hold NaN or infinite values; check that the model's "
            "weights are finite."
        )
    if clusters == 1:
        warnings.warn("Clustering into one cluster puts every example together.", stacklevel=2)
    kmeans = KMeans(n_clusters=clusters, n_init=restarts, max_iter=ITERATIONS, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kmeans.fit(features)
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            warnings.warn(
                f"The examples hold fewer than {clusters} distinct feature vectors, so some "
                "clusters are empty: the model has probably collapsed.",
                stacklevel=2,
            )
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return kmeans


def assign_clusters(
    kmeans: KMeans, features: Float[np.ndarray, "n features"]
) -> Int[np.ndarray, " n"]:
    """Number of the nearest centre of each row."""
    return kmeans.predict(features.astype(kmeans.cluster_centers_.dtype, copy=False))


def fit_named_clusters(
    features: Float[np.ndarray, "n features"],
    labels: Int[np.ndarray, " n"],
    clusters: int | None = None,
    restarts: int = RESTARTS,
    seed: int = 0,
) -> NamedClusters:
    """k-means with as many clusters as classes (unless given) and its Hungarian match."""
    classes = len(np.unique(labels))
    if classes == 1:
        warnings.warn(
            "The labels hold a single class: scores against them say nothing about a model.",
            stacklevel=2,
        )
    kmeans = fit_kmeans(features, clusters or classes, restarts, seed)
    return NamedClusters(kmeans, match_clusters(assign_clusters(kmeans, features), labels))


def lin_match(
    protocol: Protocol,
    train: tuple[Float[np.ndarray, "n features"], Int[np.ndarray, " n"]],
    test: tuple[Float[np.ndarray, "m features"], Int[np.ndarray, " m"]] | None,
    clusters: int | None = None,
    restarts: int = RESTARTS,
    seed: int = 0,
) -> ClusteringScores:
    """LIN-MATCH of (features, labels) pairs under a protocol.

    Without a test set, ``full`` means the training set alone and ``train-test`` is refused.
    """
    if protocol == "train-test":
        if test is None:
            raise ScaeError(
                "The train-test protocol needs test images; give some or use the full protocol."
            )
        return fit_named_clusters(*train, clusters, restarts, seed).score(*test)
    pairs = [train] if test is None else [train, test]
    features = np.concatenate([pair[0] for pair in pairs])
    labels = np.concatenate([pair[1] for pair in pairs])
    return fit_named_clusters(features, labels, clusters, restarts, seed).score(features, labels)


def score_clusters(
    pred: Int[np.ndarray, " n"],
    labels: Int[np.ndarray, " n"],
    mapping: dict[int, int] | None = None,
) -> ClusteringScores:
    """Scores of cluster numbers under a mapping; by default the one that fits them best."""
    if len(labels) == 0:
        raise ScaeError("There are no examples to score; give at least one.")
    if mapping is None:
        mapping = match_clusters(pred, labels)
    classes = np.unique(np.concatenate([labels, np.array(list(mapping.values()), labels.dtype)]))
    unmatched = int(classes.max()) + 1
    named = apply_mapping(pred, mapping, unmatched)
    rows = np.searchsorted(classes, labels)
    columns = np.searchsorted(classes, named)  # `unmatched` sorts after every class
    width = len(classes) + 1
    confusion = np.bincount(rows * width + columns, minlength=len(classes) * width)
    return ClusteringScores(
        accuracy=float(np.mean(named == labels)),
        nmi=float(normalized_mutual_info_score(labels, pred)),
        ari=float(adjusted_rand_score(labels, pred)),
        confusion=confusion.reshape(len(classes), width).tolist(),
    )
