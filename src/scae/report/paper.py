"""What the paper reports for the numbers in a result, to print beside ours."""

from dataclasses import dataclass

from scae.config import ConstellationExperiment, Experiment, LossWeights


@dataclass(frozen=True)
class PaperValue:
    """A number of the paper in per cent, with where it stands."""

    value: float
    spread: float | None
    where: str

    @property
    def text(self) -> str:
        """As printed: mean (standard deviation)."""
        return f"{self.value:g}" if self.spread is None else f"{self.value:g} ({self.spread:g})"


LIN_MATCH = {
    "mnist": PaperValue(98.7, 0.35, "table 1, full model"),
    "cifar10": PaperValue(25.01, 1.0, "table 1, full model"),
    "svhn": PaperValue(55.33, 3.4, "table 1, full model"),
    "mnist40": PaperValue(98.7, 0.35, "table 2, full model"),
    "affnist": PaperValue(92.2, 0.59, "table 2, full model"),
}
LIN_PRED = {
    "mnist": PaperValue(99.0, 0.07, "table 1, full model"),
    "cifar10": PaperValue(33.48, 0.3, "table 1, full model"),
    "svhn": PaperValue(67.27, 4.5, "table 1, full model"),
}
# Tables 1 and 2 score in these protocols; other numbers have no counterpart in the paper.
MATCH_PROTOCOL = {"mnist": "full", "cifar10": "full", "svhn": "full", "mnist40": "train-test"}
PRED_PROTOCOL = "train-test"

SEGMENTATION = PaperValue(2.8, None, "section 3.1, best model")
SEGMENTATION_ONE_LOSS = PaperValue(10.0, None, "section 3.1, without the two-parts loss, about")
SEGMENTATION_BASELINE = PaperValue(26.0, None, "section 3.1, best baseline")


def lin_match(dataset: str, protocol: str) -> PaperValue | None:
    """The full model's LIN-MATCH, where the paper has the data set and the protocol."""
    if protocol != MATCH_PROTOCOL.get(dataset, "train-target"):
        return None
    return LIN_MATCH.get(dataset)


def lin_pred(dataset: str, protocol: str) -> PaperValue | None:
    """The full model's LIN-PRED, where the paper has the data set."""
    return LIN_PRED.get(dataset) if protocol == PRED_PROTOCOL else None


def segmentation_error(experiment: Experiment) -> PaperValue | None:
    """The error of section 3.1 for the kind of constellation model that was trained."""
    if not isinstance(experiment, ConstellationExperiment):
        return None
    if experiment.data.name != "constellations":
        return None
    if experiment.model.decoder == "baseline":
        return SEGMENTATION_BASELINE
    loss: LossWeights = experiment.loss
    return SEGMENTATION if loss.two_parts else SEGMENTATION_ONE_LOSS
