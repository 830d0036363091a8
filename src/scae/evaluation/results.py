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

    dataset: str  # of the scored images
    lin_match: Scores  # accuracy of k-means clusters after the best one-to-one naming
    lin_pred: Scores  # accuracy of a linear classifier on images it was not fitted to
    nmi: Scores  # normalised mutual information of the same clusters
    ari: Scores  # adjusted Rand index of the same clusters
    # Matched confusion matrices: rows are classes, the last column is "matches none".
    confusion: dict[str, dict[str, list[list[int]]]]
    clusters: int
    n_train: int
    n_test: int  # test or target images; 0 when all data were given as one set
    baselines: Scores  # LIN-MATCH without a model, by name and protocol
    capsules: dict[str, float]  # how capsules are used, see `scae.diagnostics`
    protocols: dict[str, str]  # what each protocol's name means
    seed: int  # of k-means
    seconds: float
    unit: str = "fraction"


@dataclass(frozen=True)
class ConstellationResult(_Result):
    """Segmentation of point sets by one forward pass."""

    dataset: str  # of the scored scenes
    segmentation_error: float  # wrong present points over all present points
    ari: float  # adjusted Rand index, mean over scenes
    n_scenes: int  # with a present point
    n_points: int  # present ones
    baselines: dict[str, dict[str, float]]  # error and ARI by chance, and with one capsule
    seed: int  # of the scenes
    seconds: float
    # By standard deviation of noise on the points, of generated scenes.
    error_at_noise: dict[str, float] = field(default_factory=dict)
    convention: str = SEGMENTATION_CONVENTION
    unit: str = "fraction"


Result = ImageResult | ConstellationResult
