"""How well object capsules segment the points of a scene (section 3.1).

The released score depends on how capsules are numbered, so ours follows `CONVENTION`. A point
without a capsule (a negative prediction) or whose capsule matches no object is an error.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.optimize import linear_sum_assignment

from scae.errors import ScaeError

CONVENTION = (
    "per scene, full Hungarian match of capsules to objects on present points; every present "
    "point is assigned; empty scenes are left out; error pooled over points"
)
# Labels drawn from the plain seed would be predicted without error.
CHANCE_STREAM = 31

PointLabels = Int[np.ndarray, "scenes points"]
PointPresence = Shaped[np.ndarray, "scenes points"]


@dataclass(frozen=True)
class SegmentationScores:
    """Segmentation of many scenes; see `CONVENTION`."""

    error: float  # wrong present points over all present points
    ari: float  # adjusted Rand index, mean over scenes
    scenes: int  # with a present point
    points: int  # present ones


def score_segmentation(
    pred: PointLabels, labels: PointLabels, presence: PointPresence
) -> SegmentationScores:
    """Score predicted capsules against true objects on the points with presence above 0.5."""
    present = presence > 0.5
    if np.any(labels[present] < 0):
        raise ScaeError(
            "A present point has a negative object label; label every present point with the "
            "number of its object, from 0."
        )
    if not present.any():
        raise ScaeError("No scene has a present point; give at least one scene that has.")
    capsules = np.union1d(pred.clip(-1), -1)  # the first row holds points without a capsule
    one_hot = (pred.clip(-1)[..., None] == capsules).astype(np.float64)
    objects = (labels[..., None] == np.unique(labels[present])) & present[..., None]
    table = (one_hot.swapaxes(1, 2) @ objects).astype(int)[present.any(1)]  # (S, rows, objects)
    correct = sum(t[linear_sum_assignment(t, maximize=True)].sum() for t in table[:, 1:])
    return SegmentationScores(
        error=float(1 - correct / table.sum()),
        ari=float(_adjusted_rand_index(table).mean()),
        scenes=len(table),
        points=int(table.sum()),
    )


def baselines(
    labels: PointLabels, presence: PointPresence, capsules: int, seed: int = 0
) -> dict[str, SegmentationScores]:
    """Scores when points go to capsules at random, or all to one as in a collapsed model."""
    random = np.random.default_rng([CHANCE_STREAM, seed]).integers(capsules, size=labels.shape)
    without = {"chance": random, "single capsule": np.zeros_like(labels)}
    return {name: score_segmentation(pred, labels, presence) for name, pred in without.items()}


def _adjusted_rand_index(
    table: Int[np.ndarray, "scenes rows objects"],
) -> Float[np.ndarray, " scenes"]:
    """Hubert & Arabie (1985) for all scenes at once; 1 where both partitions are trivial."""

    def pairs(*axes: int) -> Int[np.ndarray, " scenes"]:
        counts = table.sum(axes)
        return (counts * (counts - 1) // 2).reshape(len(table), -1).sum(1)

    both, total, by_pred, by_label = pairs(), pairs(1, 2), pairs(2), pairs(1)
    expected = by_pred * by_label / np.maximum(total, 1)
    ceiling = (by_pred + by_label) / 2
    trivial = ceiling == expected
    return np.where(trivial, 1.0, (both - expected) / np.where(trivial, 1.0, ceiling - expected))
