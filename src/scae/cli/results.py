"""Evaluation results as a small table for people."""

from typing import Any

from scae.config import Experiment
from scae.scores import diagnosis_rows, score_rows, summary


def describe(experiment: Experiment, scores: dict[str, Any]) -> str:
    """Scores in per cent beside the paper's and those without a model, then the capsules."""
    rows = score_rows(experiment, scores)
    known = any(paper != "–" for _, _, paper in rows)
    capsules = [(text, value, "") for text, value in diagnosis_rows(scores.get("capsules", {}))]
    table = [("in %", "here", "paper"), *rows, *([("", "", "")] if capsules else []), *capsules]
    width = max(len(name) for name, _, _ in table)
    lines = [
        f"{name:{width}}  {ours:>6}  {paper if known else ''}".rstrip()
        for name, ours, paper in table
    ]
    return "\n".join([summary(scores), *lines])
