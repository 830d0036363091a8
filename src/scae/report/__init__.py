"""`report.html` of a run: one page that opens anywhere, without a network."""

import base64
import json
import math
from pathlib import Path
from typing import Any

import jinja2

import scae
from scae import config, files, paper_values
from scae.api import Loaded
from scae.config import Experiment
from scae.errors import ScaeError
from scae.figures.curves import Metrics
from scae.figures.make import FIGURE_LIST, Result, read_scores, run_metrics
from scae.paper_values import PaperValue
from scae.presets import preset

# What the report says of a model's capsules, by field of `scae.diagnostics.Diagnosis`.
DIAGNOSTICS = {
    "parts_present": "parts present in an image (presence above 0.5)",
    "part_size": "size of a present part, as a share of the image's side",
    "objects_present": "objects present in an example (prior presence above 0.5)",
    "explained_by_present": "share of the parts that present objects explain",
    "objects_sharing": "objects that share the parts of one example",
    "objects_in_use": "objects that explain a noticeable share of all examples",
    "image_ll": "log-likelihood of an image, in nats",
    "part_ll": "log-likelihood of the parts of an example, in nats",
}


def write_report(folder: Path | str, loaded: Loaded, result: Result | None = None) -> Path:
    """Write `report.html` into a run folder.

    It shows the figures in `folder/figures` (see `make_figures`), the scores of `result` or
    of the run's evaluation.json beside the paper's, diagnostics and the configuration.
    """
    folder, experiment = Path(folder), loaded.experiment
    figures = folder / "figures"
    drawn = _read(figures / FIGURE_LIST)
    scores, metrics = read_scores(folder, result), run_metrics(folder)
    environment = _read(folder / "environment.json")
    page = _template().render(
        experiment=experiment,
        version=scae.__version__,
        facts=_facts(experiment, metrics, environment),
        symptoms=drawn.get("symptoms", []),
        scores=scores,
        rows=_score_rows(experiment, scores),
        diagnosis=_diagnosis_rows(drawn.get("diagnosis", {})),
        examples=drawn.get("data", ""),
        figures=[figure | _embed(figures / figure["file"]) for figure in drawn.get("figures", [])],
        changes=_changes(experiment),
        configuration=config.to_json(experiment),
        environment=environment,
    )
    path = folder / "report.html"
    files.write_text(path, page)
    return path


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("scae.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("report.html.jinja")


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
    return found


def _embed(path: Path) -> dict[str, str]:
    data = base64.b64encode(path.read_bytes()).decode()
    return {"uri": f"data:image/png;base64,{data}"}


def _facts(
    experiment: Experiment, metrics: Metrics, environment: dict[str, Any]
) -> dict[str, object]:
    steps = [step for step in metrics.get("step", ()) if math.isfinite(step)]
    planned = experiment.training.steps
    done = f"{min(max(steps) + 1, planned):,.0f} of " if steps else ""  # counted from 0
    facts = {
        "data": experiment.data.name,
        "steps": f"{done}{planned:,}",
        "batch": experiment.training.batch,
        "seed": experiment.training.seed,
        "started": (environment.get("started") or "")[:16].replace("T", " "),
        "commit": (environment.get("commit") or "")[:10],
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}


def _score_rows(experiment: Experiment, scores: dict[str, Any]) -> list[dict[str, str]]:
    """Scores in per cent with the paper's values, then the baselines."""
    if not scores:
        return []
    rows = []
    if "segmentation_error" in scores:
        paper = paper_values.segmentation_error(experiment)
        rows.append(_row("Segmentation error", scores["segmentation_error"], paper))
        for noise, error in scores.get("error_at_noise", {}).items():
            rows.append(_row(f"Segmentation error, noise {noise} on the points", error))
        for name, baseline in scores["baselines"].items():
            rows.append(_row(f"Baseline without a model: {name}", baseline["segmentation_error"]))
        return rows
    for name, field, lookup in (
        ("LIN-MATCH", "lin_match", paper_values.lin_match),
        ("LIN-PRED", "lin_pred", paper_values.lin_pred),
    ):
        for level, values in scores[field].items():
            for protocol, value in values.items():
                paper = lookup(experiment, scores["dataset"], protocol)
                text = f"{name}, {level} presences, {protocol}"
                rows.append(_row(text, value, paper if level == "prior" else None))
    for name, values in scores["baselines"].items():
        for protocol, value in values.items():
            rows.append(_row(f"Baseline without a model: {name}, LIN-MATCH, {protocol}", value))
    return rows


def _row(name: str, value: float, paper: PaperValue | None = None) -> dict[str, str]:
    return {"name": name, "here": f"{100 * value:.2f}", "paper": paper.text if paper else "–"}


def _diagnosis_rows(diagnosis: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (name, meaning, f"{diagnosis[name]:.4g}")
        for name, meaning in DIAGNOSTICS.items()
        if diagnosis.get(name) is not None
    ]


def _changes(experiment: Experiment) -> list[str]:
    """Fields that differ from the preset of the same name, if there is one."""
    try:
        return config.differences(preset(experiment.name), experiment)
    except ScaeError:
        return []
