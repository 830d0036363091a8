"""How well object capsules segment the points of a scene (section 3.1).

Convention, stated because the released one depends on how capsules are numbered: within each
scene, capsules are matched one-to-one to the true objects by a full Hungarian match on the
present points. Every present point is assigned; a point without a capsule (a negative
prediction) or whose capsule matches no object is an error. Scenes without a present point are
left out. The error is pooled over points, as in the release; the ARI is a mean over scenes.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.optimize import linear_sum_assignment

from scae.errors import ScaeError

# Labels drawn from the plain seed would be predicted without error.
CHANCE_STREAM = 31


@dataclass(frozen=True)
class SegmentationScores:
    """Segmentation of many scenes; see the module's convention."""

    error: float
    """Wrong present points over all present points."""
    scene_error: float
    """The same error as a mean over scenes."""
    ari: float
    """Adjusted Rand index, mean over scenes."""
    scenes: int
    """Scenes scored."""
    empty_scenes: int
    """Scenes left out because no point is present."""
    points: int
    """Present points scored."""


def score_segmentation(
    pred: Int[np.ndarray, "scenes points"],
    labels: Int[np.ndarray, "scenes points"],
    presence: Shaped[np.ndarray, "scenes points"],
) -> SegmentationScores:
    """Score predicted capsules against true objects on the points with presence above 0.5."""
    present = presence > 0.5
    if np.any(labels[present] < 0):
        raise ScaeError(
            "A present point has a negative object label; label every present point with the "
            "number of its object, from 0."
        )
    kept = present.any(axis=1)
    if not kept.any():
        raise ScaeError("No scene has a present point; give at least one scene that has.")
    table = _tables(pred[kept], labels[kept], present[kept])
    points = table.sum(axis=(1, 2))
    # Row 0 holds points that were assigned to no capsule: they can match nothing.
    correct = np.array([t[linear_sum_assignment(t, maximize=True)].sum() for t in table[:, 1:]])
    return SegmentationScores(
        error=float(1 - correct.sum() / points.sum()),
        scene_error=float(np.mean(1 - correct / points)),
        ari=float(_adjusted_rand_index(table).mean()),
        scenes=int(kept.sum()),
        empty_scenes=int((~kept).sum()),
        points=int(points.sum()),
    )


def single_capsule_baseline(
    labels: Int[np.ndarray, "scenes points"], presence: Shaped[np.ndarray, "scenes points"]
) -> SegmentationScores:
    """Scores when one capsule takes every point: what a collapsed model reaches."""
    return score_segmentation(np.zeros_like(labels), labels, presence)


def chance_baseline(
    labels: Int[np.ndarray, "scenes points"],
    presence: Shaped[np.ndarray, "scenes points"],
    capsules: int,
    seed: int = 0,
) -> SegmentationScores:
    """Scores when each point goes to one of ``capsules`` capsules at random."""
    pred = np.random.default_rng([CHANCE_STREAM, seed]).integers(capsules, size=labels.shape)
    return score_segmentation(pred, labels, presence)


def _tables(
    pred: Int[np.ndarray, "scenes points"],
    labels: Int[np.ndarray, "scenes points"],
    present: Shaped[np.ndarray, "scenes points"],
) -> Int[np.ndarray, "scenes rows objects"]:
    """Counts of (capsule, object) per scene; row 0 is "no capsule", then one row a capsule."""
    capsules, pred = np.unique(np.maximum(pred, -1), return_inverse=True)
    pred = pred.reshape(labels.shape) + (0 if capsules[0] == -1 else 1)
    objects, labels = np.unique(np.where(present, labels, labels[present][0]), return_inverse=True)
    labels = labels.reshape(pred.shape)
    scenes, rows, columns = len(pred), int(pred.max()) + 1, len(objects)
    scene = np.broadcast_to(np.arange(scenes)[:, None], pred.shape)
    flat = ((scene * rows + pred) * columns + labels)[present]
    counts = np.bincount(flat, minlength=scenes * rows * columns)
    return counts.reshape(scenes, rows, columns)


def _pairs(counts: Int[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
    return counts * (counts - 1) // 2


def _adjusted_rand_index(
    table: Int[np.ndarray, "scenes rows objects"],
) -> Float[np.ndarray, " scenes"]:
    """Hubert & Arabie (1985) per scene; 1 where both partitions are the same trivial one."""
    both = _pairs(table).sum(axis=(1, 2))
    same_pred = _pairs(table.sum(axis=2)).sum(axis=1)
    same_true = _pairs(table.sum(axis=1)).sum(axis=1)
    total = _pairs(table.sum(axis=(1, 2)))
    expected = same_pred * same_true / np.maximum(total, 1)
    ceiling = (same_pred + same_true) / 2
    trivial = ceiling == expected
    return np.where(trivial, 1.0, (both - expected) / np.where(trivial, 1.0, ceiling - expected))
