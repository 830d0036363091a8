"""Results of an evaluation, with everything needed to read the numbers in their JSON.

Scores and errors are fractions of 1. Scores of images are by kind of presence ("prior",
"posterior") and protocol.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

PROTOCOLS = {
    "train-test": "clusters, their names and the linear classifier are fitted on the training "
    "images and scored on the test images; for LIN-PRED this is the paper's protocol",
    "full": "clusters are fitted, named and scored on training and test images together; for "
    "LIN-MATCH this is the paper's protocol",
    "train-target": "clusters, their names and the linear classifier are fitted on the training "
    "images and scored on the target images",
    "target": "clusters are fitted, named and scored on the target images alone",
}
SEGMENTATION_CONVENTION = (
    "per scene, full Hungarian match of capsules to objects on present points; every present "
    "point is assigned; empty scenes are left out; error pooled over points"
)

Scores = dict[str, dict[str, float]]


class _Result:
    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists, strings and numbers."""
        return asdict(self)  # type: ignore[call-overload]


@dataclass(frozen=True)
class ImageResult(_Result):
    """Unsupervised classification of images."""

    dataset: str
    """Data set of the scored images."""
    lin_match: Scores
    """Accuracy of k-means clusters after the best one-to-one naming."""
    lin_pred: Scores
    """Accuracy of a linear classifier with K * C + C parameters on images it was not fitted to."""
    nmi: Scores
    """Normalised mutual information of the same clusters."""
    ari: Scores
    """Adjusted Rand index of the same clusters."""
    confusion: dict[str, dict[str, list[list[int]]]]
    """Matched confusion matrices: rows are classes, the last column is "matches none"."""
    clusters: int
    n_train: int
    n_test: int
    """Test or target images; 0 when all data were given as one set."""
    baselines: Scores
    """LIN-MATCH without a model, by name and protocol; empty when not asked for."""
    capsules: dict[str, float]
    """How capsules are used on the scored images, see `scae.diagnostics`."""
    protocols: dict[str, str]
    """What each protocol's name means."""
    seed: int
    """Seed of k-means."""
    seconds: float
    unit: str = "fraction"


@dataclass(frozen=True)
class ConstellationResult(_Result):
    """Segmentation of point sets by one forward pass."""

    dataset: str
    """Data set of the scored scenes."""
    segmentation_error: float
    """Wrong present points over all present points."""
    ari: float
    """Adjusted Rand index, mean over scenes."""
    n_scenes: int
    """Scenes with a present point."""
    n_points: int
    """Present points."""
    baselines: dict[str, dict[str, float]]
    """Error and ARI by chance, and with a single capsule."""
    seed: int
    """Seed of the scenes."""
    seconds: float
    error_at_noise: dict[str, float] = field(default_factory=dict)
    """Segmentation error by standard deviation of noise on the points, of generated scenes."""
    convention: str = SEGMENTATION_CONVENTION
    unit: str = "fraction"


Result = ImageResult | ConstellationResult
