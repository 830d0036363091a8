"""What the paper reports for the numbers in a result, to print beside ours."""

from dataclasses import dataclass

from scae.config import ConstellationExperiment, Experiment
from scae.paper_values import (
    CONSTELLATIONS,
    TABLE1_LIN_MATCH,
    TABLE1_LIN_PRED,
    TABLE2,
    PaperValue,
)

# Which table's protocol each of ours is: table 1 fits and scores all images together, table 2
# scores test images, or affNIST with what was learned on 40x40 MNIST.
TABLE1_PROTOCOL = "full"
TABLE2_PROTOCOLS = ("train-test", "train-target")


@dataclass(frozen=True)
class Quoted:
    """A number of the paper and where it stands."""

    value: PaperValue
    where: str


def lin_match(experiment: Experiment, dataset: str, protocol: str) -> Quoted | None:
    """LIN-MATCH in the paper, for the same data, protocol and ablation; None if it has none."""
    _, _, ablation = experiment.name.partition("/")
    if protocol == TABLE1_PROTOCOL and not ablation and dataset in TABLE1_LIN_MATCH:
        return Quoted(TABLE1_LIN_MATCH[dataset], "table 1")
    row = TABLE2.get(ablation or "full", {})
    if protocol in TABLE2_PROTOCOLS and dataset in row:
        return Quoted(row[dataset], f"table 2, {ablation or 'full model'}")
    return None


def lin_pred(experiment: Experiment, dataset: str, protocol: str) -> Quoted | None:
    """LIN-PRED of table 1, which knows no ablations."""
    if protocol != "train-test" or "/" in experiment.name or dataset not in TABLE1_LIN_PRED:
        return None
    return Quoted(TABLE1_LIN_PRED[dataset], "table 1")


def segmentation_error(experiment: Experiment) -> Quoted | None:
    """The error of section 3.1 for the kind of constellation model that was trained."""
    if not isinstance(experiment, ConstellationExperiment):
        return None
    if experiment.data.name != "constellations":
        return None
    if experiment.model.decoder == "baseline":
        kind = "baseline"
    else:
        kind = "full" if experiment.loss.two_parts else "no-two-parts"
    return Quoted(CONSTELLATIONS[kind], f"section 3.1, {kind}")
