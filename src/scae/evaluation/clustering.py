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
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from scae.errors import ScaeError

RESTARTS = 10
MAX_ITERATIONS = 100
MAX_PROBE_ITERATIONS = 300
# k-means on pixels: one start costs as much as dozens on presences.
PIXEL_RESTARTS = 3
MAX_PIXEL_IMAGES = 20_000

Labels = Int[np.ndarray, " _"]
Labelled = tuple[Shaped[np.ndarray, "_ ..."], Labels]


@dataclass(frozen=True)
class ClusteringScores:
    """A clustering against labels: accuracy after one-to-one matching, NMI and ARI."""

    accuracy: float
    nmi: float
    ari: float
    confusion: list[list[int]]
    """Rows: true classes. Columns: matched classes, then one for clusters that match none."""


def fit_kmeans(
    features: Float[np.ndarray, "n features"],
    clusters: int,
    seed: int = 0,
    restarts: int = RESTARTS,
) -> KMeans:
    """k-means, the best of several starts; warns when the data hold fewer distinct points."""
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        kmeans.fit(features)
    if len(np.unique(kmeans.labels_)) < clusters:
        warnings.warn(
            f"The examples hold fewer than {clusters} distinct feature vectors, so some "
            "clusters are empty: the model has probably collapsed.",
            stacklevel=2,
        )
    return kmeans


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
    if len(labels) == 0:
        raise ScaeError("There are no examples to score; give at least one.")
    mapping = match_clusters(pred, labels) if mapping is None else mapping
    classes = np.union1d(labels, list(mapping.values()))
    column = {cluster: int(np.searchsorted(classes, c)) for cluster, c in mapping.items()}
    rows = np.searchsorted(classes, labels)
    columns = np.array([column.get(int(p), len(classes)) for p in pred])
    confusion = np.zeros((len(classes), len(classes) + 1), int)
    np.add.at(confusion, (rows, columns), 1)
    return ClusteringScores(
        accuracy=float(np.mean(rows == columns)),
        nmi=float(normalized_mutual_info_score(labels, pred)),
        ari=float(adjusted_rand_score(labels, pred)),
        confusion=confusion.tolist(),
    )


def lin_match(
    fit: Labelled, score: Labelled, clusters: int | None = None, seed: int = 0
) -> ClusteringScores:
    """LIN-MATCH of (features, labels): clusters and names from `fit`, scores of `score`.

    There are as many clusters as classes in `fit` unless given.
    """
    features, labels = fit
    if len(np.unique(labels)) == 1:
        warnings.warn("The labels hold a single class: scores say nothing.", stacklevel=2)
    kmeans = fit_kmeans(features, clusters or len(np.unique(labels)), seed)
    mapping = match_clusters(kmeans.labels_, labels)
    return score_clusters(kmeans.predict(score[0]), score[1], mapping)


def fit_probe(features: Float[np.ndarray, "n features"], labels: Int[np.ndarray, " n"]) -> Pipeline:
    """LIN-PRED: softmax regression on standardised features, K * C weights and C biases."""
    if len(np.unique(labels)) == 1:
        warnings.warn("The labels hold a single class: LIN-PRED says nothing.", stacklevel=2)
        return make_pipeline(DummyClassifier()).fit(features, labels)
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=MAX_PROBE_ITERATIONS))
    with warnings.catch_warnings():
        # Stopping early costs a fraction of a per cent of accuracy, not correctness.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return probe.fit(features.astype(np.float64), labels)


def pixel_kmeans(fit: Labelled, score: Labelled, clusters: int, seed: int = 0) -> float:
    """LIN-MATCH of raw pixels in bytes, the baseline without a model.

    At most 20 000 rows, drawn at random, make the clusters.
    """
    rows = np.random.default_rng(seed).permutation(len(fit[0]))[:MAX_PIXEL_IMAGES]
    kmeans = fit_kmeans(fit[0][rows].astype(np.float32) / 255, clusters, seed, PIXEL_RESTARTS)

    def assign(pixels: np.ndarray) -> Labels:
        # In chunks: floats of a whole data set may not fit.
        chunks = np.array_split(pixels, len(pixels) // 5000 + 1)
        return np.concatenate([kmeans.predict(c.astype(np.float32) / 255) for c in chunks])

    mapping = match_clusters(assign(fit[0]), fit[1])
    return score_clusters(assign(score[0]), score[1], mapping).accuracy
