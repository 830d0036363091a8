"""One-to-one matching of arbitrary cluster numbers to labels (Kuhn 1955)."""

import numpy as np
from jaxtyping import Int
from scipy.optimize import linear_sum_assignment


def contingency(
    pred: Int[np.ndarray, " n"], labels: Int[np.ndarray, " n"]
) -> tuple[Int[np.ndarray, "classes clusters"], np.ndarray, np.ndarray]:
    """How often each label meets each cluster, and the values the rows and columns stand for."""
    classes, rows = np.unique(labels, return_inverse=True)
    clusters, columns = np.unique(pred, return_inverse=True)
    flat = np.bincount(rows * len(clusters) + columns, minlength=len(classes) * len(clusters))
    return flat.reshape(len(classes), len(clusters)), classes, clusters


def match_clusters(pred: Int[np.ndarray, " n"], labels: Int[np.ndarray, " n"]) -> dict[int, int]:
    """The one-to-one mapping of clusters to labels with the fewest errors.

    With more clusters than classes the clusters left over have no entry, and their examples
    count as errors: a many-to-one mapping would reward splitting the data ever finer.
    """
    table, classes, clusters = contingency(pred, labels)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return {int(clusters[c]): int(classes[r]) for r, c in zip(rows, columns, strict=True)}


def apply_mapping(
    pred: Int[np.ndarray, " n"], mapping: dict[int, int], unmatched: int
) -> Int[np.ndarray, " n"]:
    """Labels of clusters under a mapping; ``unmatched`` where a cluster has no entry."""
    clusters, inverse = np.unique(pred, return_inverse=True)
    values = np.array([mapping.get(int(c), unmatched) for c in clusters], dtype=np.int64)
    return values[inverse]
