"""Scores and diagnostics as rows of a table, ours beside the paper's."""

from typing import Any

from scae.config import ConstellationExperiment, Experiment
from scae.diagnostics import DIAGNOSTICS
from scae.paper_values import CONSTELLATIONS, TABLE1_LIN_MATCH, TABLE1_LIN_PRED, TABLE2, PaperValue

Row = tuple[str, str, str]
"""Name, ours and the paper's value."""


def score_rows(experiment: Experiment, scores: dict[str, Any], short: bool = False) -> list[Row]:
    """An evaluation's JSON in per cent with the paper's values, then the baselines.

    `short` keeps prior presences and the first protocol, and leaves out noise on points.
    """
    if "segmentation_error" in scores:
        rows = [_row("segmentation error", scores["segmentation_error"], error(experiment))]
        for noise, value in {} if short else scores.get("error_at_noise", {}).items():
            rows.append(_row(f"segmentation error, noise {noise} on the points", value))
        for name, baseline in scores["baselines"].items():
            rows.append(_row(f"without a model: {name}", baseline["segmentation_error"]))
        return rows
    rows = []
    for name, field, paper in (
        ("LIN-MATCH", "lin_match", lin_match),
        ("LIN-PRED", "lin_pred", lin_pred),
    ):
        for level in ("prior",) if short else scores[field]:
            for protocol, value in list(scores[field][level].items())[: 1 if short else None]:
                printed = paper(experiment, scores["dataset"], protocol)
                text = f"{name}, {level} presences, {protocol}"
                rows.append(_row(text, value, printed if level == "prior" else None))
    for name, values in scores["baselines"].items():
        for protocol, value in list(values.items())[: 1 if short else None]:
            rows.append(_row(f"without a model: {name}, LIN-MATCH, {protocol}", value))
    return rows


def summary(scores: dict[str, Any]) -> str:
    """What was scored, in a line."""
    if "segmentation_error" in scores:
        size = f"{scores['n_scenes']:,} scenes, {scores['n_points']:,} present points"
    else:
        size = f"{scores['n_train']:,} training images, {scores['n_test']:,} held out, "
        size += f"{scores['clusters']} clusters"
    return f"{scores['dataset']}: {size}"


def diagnosis_rows(values: dict[str, float]) -> list[tuple[str, str]]:
    """What each known diagnostic means, and its value."""
    return [(text, f"{values[name]:.4g}") for name, text in DIAGNOSTICS.items() if name in values]


def _row(name: str, value: float, paper: PaperValue | None = None) -> Row:
    return name, f"{100 * value:.2f}", paper.text if paper else "–"


def lin_match(experiment: Experiment, dataset: str, protocol: str) -> PaperValue | None:
    """LIN-MATCH in the paper for the same data, protocol and ablation; None if it has none.

    Table 1 clusters and scores all images together, table 2 scores held-out images.
    """
    row = experiment.name.partition("/")[2] or "full"
    if protocol == "full":
        return TABLE1_LIN_MATCH.get(dataset) if row == "full" else None
    return TABLE2.get(row, {}).get(dataset)


def lin_pred(experiment: Experiment, dataset: str, protocol: str) -> PaperValue | None:
    """LIN-PRED of table 1, which knows no ablations."""
    if protocol != "train-test" or "/" in experiment.name:
        return None
    return TABLE1_LIN_PRED.get(dataset)


def error(experiment: Experiment) -> PaperValue | None:
    """The error of section 3.1 for the kind of constellation model that was trained."""
    if not isinstance(experiment, ConstellationExperiment):
        return None
    if experiment.model.decoder == "baseline":
        return CONSTELLATIONS["baseline"]
    return CONSTELLATIONS["full" if experiment.loss.two_parts else "no-two-parts"]
