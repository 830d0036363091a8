"""How well object capsules segment the points of a scene (section 3.1).

The released score depends on how capsules are numbered, so ours follows `CONVENTION`. A point
without a capsule (a negative prediction) or whose capsule matches no object is an error.
"""

import numpy as np
from jaxtyping import Int, Shaped
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


def segmentation_error(pred: PointLabels, labels: PointLabels, presence: PointPresence) -> float:
    """Wrong present points over all points with presence above 0.5; see `CONVENTION`."""
    present = presence > 0.5
    if np.any(labels[present] < 0):
        raise ScaeError(
            "A present point has a negative object label; label every present point with the "
            "number of its object, from 0."
        )
    if not present.any():
        raise ScaeError("No scene has a present point; give at least one scene that has.")
    capsules = np.unique(pred[pred >= 0])
    one_hot = (pred[..., None] == capsules).astype(np.float64)
    objects = (labels[..., None] == np.unique(labels[present])) & present[..., None]
    tables = one_hot.swapaxes(1, 2) @ objects  # (scenes, capsules, objects)
    correct = sum(t[linear_sum_assignment(t, maximize=True)].sum() for t in tables)
    return float(1 - correct / present.sum())


def baselines(
    labels: PointLabels, presence: PointPresence, capsules: int, seed: int = 0
) -> dict[str, float]:
    """Errors when points go to capsules at random, or all to one as in a collapsed model."""
    random = np.random.default_rng([CHANCE_STREAM, seed]).integers(capsules, size=labels.shape)
    without = {"chance": random, "single capsule": np.zeros_like(labels)}
    return {name: segmentation_error(pred, labels, presence) for name, pred in without.items()}
