"""Results of an evaluation, with everything needed to read the numbers in their JSON."""

import json
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


class _Json:
    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists, strings and numbers."""
        return asdict(self)  # type: ignore[call-overload]

    def to_json(self) -> str:
        """Indented JSON; not-a-number is refused rather than written as invalid JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)


@dataclass(frozen=True)
class ByPresence:
    """One number per protocol from the prior and from the posterior object presences."""

    prior: dict[str, float]
    posterior: dict[str, float]


@dataclass(frozen=True)
class Confusions:
    """Matched confusion matrices: rows are classes, the last column is "matches none"."""

    prior: dict[str, list[list[int]]]
    posterior: dict[str, list[list[int]]]


@dataclass(frozen=True)
class ImageResult(_Json):
    """Unsupervised classification of images; every score is a fraction of 1."""

    dataset: str
    """Data set of the scored images."""
    lin_match: ByPresence
    """Accuracy of k-means clusters after the best one-to-one naming."""
    lin_pred: ByPresence
    """Accuracy of a linear classifier with K * C + C parameters on images it was not fitted to."""
    nmi: ByPresence
    """Normalised mutual information of the same clusters."""
    ari: ByPresence
    """Adjusted Rand index of the same clusters."""
    confusion: Confusions
    """Confusion matrices of the same clusters after matching."""
    clusters: int
    """Clusters of k-means."""
    n_train: int
    """Training images."""
    n_test: int
    """Test or target images; 0 when all data were given as one set."""
    baselines: dict[str, dict[str, float]]
    """LIN-MATCH without a model, by name and protocol; empty when not asked for."""
    capsules: dict[str, float]
    """How capsules are used on the scored images, see `scae.diagnostics`."""
    protocols: dict[str, str]
    """What each protocol's name means."""
    seed: int
    """Seed of k-means."""
    seconds: float
    """Wall-clock time."""
    unit: str = "fraction"
    """Scores are fractions, not percentages."""


@dataclass(frozen=True)
class ConstellationResult(_Json):
    """Segmentation of point sets by one forward pass; errors are fractions of 1."""

    dataset: str
    """Data set of the scored scenes."""
    segmentation_error: float
    """Wrong present points over all present points."""
    scene_error: float
    """The same error as a mean over scenes."""
    ari: float
    """Adjusted Rand index, mean over scenes."""
    n_scenes: int
    """Scenes scored."""
    n_empty_scenes: int
    """Scenes left out because no point is present."""
    n_points: int
    """Present points scored."""
    baselines: dict[str, dict[str, float]]
    """Error and ARI by chance, and with a single capsule."""
    seed: int
    """Seed of the scenes."""
    seconds: float
    """Wall-clock time."""
    error_at_noise: dict[str, float] = field(default_factory=dict)
    """Segmentation error by standard deviation of noise on the points, of generated scenes."""
    convention: str = SEGMENTATION_CONVENTION
    """How points, capsules and objects are matched."""
    unit: str = "fraction"
    """Errors are fractions, not percentages."""
