"""LIN-MATCH and LIN-PRED: how well presences tell classes apart (section 3.2).

LIN-MATCH is k-means on presences and the best one-to-one naming of its clusters. Clusters and
names are fitted on one set and scored on another, or, as in the paper, on the same. LIN-PRED is
a linear classifier on presences, trained with labels.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from scae.errors import ScaeError

RESTARTS = 10
MAX_ITERATIONS = 100
MAX_PROBE_ITERATIONS = 300
# Pixels: one start of k-means costs as much as dozens on presences.
PIXEL_RESTARTS = 3
MAX_FITTED = 20_000
UNMATCHED = -1

Labelled = tuple[Shaped[np.ndarray, "_ features"], Int[np.ndarray, " _"]]


@dataclass(frozen=True)
class ClusteringScores:
    """A clustering against labels: accuracy after one-to-one matching, and NMI."""

    accuracy: float
    nmi: float
    confusion: list[list[int]]
    """Rows: true classes. Columns: matched classes, then one for clusters that match none."""


def fit_kmeans(
    features: Float[np.ndarray, "n features"],
    clusters: int,
    seed: int = 0,
    restarts: int = RESTARTS,
) -> KMeans:
    """k-means, the best of several starts."""
    if not 1 <= clusters <= len(features):
        raise ScaeError(
            f"{clusters} clusters were asked for with {len(features)} examples; ask for at "
            "least 1 and at most as many as there are examples."
        )
    if not np.isfinite(features).all():
        raise ScaeError(
            "The features to cluster hold NaN or infinite values; check that the model's "
            "weights are finite."
        )
    kmeans = KMeans(clusters, n_init=restarts, max_iter=MAX_ITERATIONS, random_state=seed)
    return kmeans.fit(features)


def match_clusters(pred: Int[np.ndarray, " n"], labels: Int[np.ndarray, " n"]) -> dict[int, int]:
    """The one-to-one mapping of clusters to labels with the fewest errors (Kuhn 1955).

    With more clusters than classes the clusters left over have no entry, and their examples
    count as errors: a many-to-one mapping would reward splitting the data ever finer.
    """
    classes, clusters = np.unique(labels), np.unique(pred)
    rows, columns = linear_sum_assignment(contingency_matrix(labels, pred), maximize=True)
    return {int(clusters[c]): int(classes[r]) for r, c in zip(rows, columns, strict=True)}


def score_clusters(
    pred: Int[np.ndarray, " n"],
    labels: Int[np.ndarray, " n"],
    mapping: dict[int, int] | None = None,
) -> ClusteringScores:
    """Scores of cluster numbers under a mapping; by default the one that fits them best."""
    mapping = match_clusters(pred, labels) if mapping is None else mapping
    matched = np.array([mapping.get(int(cluster), UNMATCHED) for cluster in pred])
    classes = [*np.union1d(labels, list(mapping.values())), UNMATCHED]
    return ClusteringScores(
        accuracy=float(np.mean(matched == labels)),
        nmi=float(normalized_mutual_info_score(labels, pred)),
        confusion=confusion_matrix(labels, matched, labels=classes)[:-1].tolist(),
    )


def lin_match(
    fit: Labelled, score: Labelled, clusters: int, seed: int = 0, restarts: int = RESTARTS
) -> ClusteringScores:
    """LIN-MATCH of (features, labels): clusters and names from `fit`, scores of `score`.

    Of pixels in bytes, at most 20 000 rows, drawn at random, make the clusters.
    """
    if len(np.unique(fit[1])) == 1:
        warnings.warn("The labels hold a single class: scores say nothing.", stacklevel=2)
    fitted = fit[0]
    if fitted.dtype == np.uint8:
        fitted = fitted[np.random.default_rng(seed).permutation(len(fitted))[:MAX_FITTED]]
    kmeans = fit_kmeans(_floats(fitted), clusters, seed, restarts)

    def assign(features: Shaped[np.ndarray, "n features"]) -> Int[np.ndarray, " n"]:
        # In chunks: pixels of a whole data set may not fit into memory as floats.
        chunks = np.array_split(features, len(features) // 5000 + 1)
        return np.concatenate([kmeans.predict(_floats(chunk)) for chunk in chunks])

    mapping = match_clusters(assign(fit[0]), fit[1])
    return score_clusters(assign(score[0]), score[1], mapping)


def _floats(features: Shaped[np.ndarray, "n features"]) -> Float[np.ndarray, "n features"]:
    return features.astype(np.float32) / 255 if features.dtype == np.uint8 else features


def fit_probe(features: Float[np.ndarray, "n features"], labels: Int[np.ndarray, " n"]) -> Pipeline:
    """LIN-PRED: softmax regression on standardised features, K * C weights and C biases."""
    if len(np.unique(labels)) == 1:
        return make_pipeline(DummyClassifier()).fit(features, labels)
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=MAX_PROBE_ITERATIONS))
    with warnings.catch_warnings():
        # Stopping early costs a fraction of a per cent of accuracy, not correctness.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return probe.fit(features.astype(np.float64), labels)
