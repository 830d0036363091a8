"""Evaluation results as a small table for people."""

from typing import Any

from scae.config import Experiment
from scae.scores import diagnosis_rows, score_rows, summary


def describe(experiment: Experiment, scores: dict[str, Any]) -> str:
    """Scores in per cent beside the paper's and those without a model, then the capsules."""
    rows = [("in %", "here", "paper"), *score_rows(experiment, scores)]
    width = max(len(name) for name, *_ in rows)
    lines = [summary(scores)]
    lines += [f"{name:{width}}  {ours:>6}  {paper}".rstrip() for name, ours, paper in rows]
    capsules = diagnosis_rows(scores.get("capsules", {}))
    return "\n".join([*lines, *(f"{text}: {value}" for text, value in capsules.items())])
