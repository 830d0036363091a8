"""`report.html` of a run: one page that opens anywhere, without a network."""

import base64
import math
from pathlib import Path
from typing import Any

import jinja2

import scae
from scae import config, files, scores
from scae.api import Loaded
from scae.config import Experiment
from scae.errors import ScaeError
from scae.figures.curves import Metrics
from scae.figures.make import FIGURE_LIST, read_scores, run_metrics
from scae.presets import preset


def write_report(folder: Path | str, loaded: Loaded, result: dict[str, Any] | None = None) -> Path:
    """Write `report.html` into a run folder.

    It shows the figures in `folder/figures` (see `make_figures`), the scores of `result` or
    of the run's evaluation.json beside the paper's, diagnostics and the configuration.
    """
    folder, experiment = Path(folder), loaded.experiment
    drawn = files.read_json(folder / "figures" / FIGURE_LIST)
    environment, found = files.read_json(folder / "environment.json"), read_scores(folder, result)
    template = jinja2.Environment(
        loader=jinja2.PackageLoader("scae.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    ).get_template("report.html.jinja")
    page = template.render(
        experiment=experiment,
        version=scae.__version__,
        facts=_facts(experiment, run_metrics(folder), environment),
        symptoms=drawn.get("symptoms", []),
        scored=scores.summary(found) if found else "",
        rows=scores.score_rows(experiment, found) if found else [],
        notes=found.get("protocols") or {"error": found.get("convention", "")},
        diagnosis=scores.diagnosis_rows(drawn.get("diagnosis", {})),
        examples=drawn.get("data", ""),
        figures=[
            figure | {"uri": _embed(folder / "figures" / figure["file"])}
            for figure in drawn.get("figures", [])
        ],
        changes=_changes(experiment),
        configuration=config.to_json(experiment),
        environment=environment,
    )
    files.write_text(folder / "report.html", page)
    return folder / "report.html"


def _embed(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


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
    return {name: value for name, value in facts.items() if value != ""}


def _changes(experiment: Experiment) -> list[str]:
    """Fields that differ from the preset of the same name, if there is one."""
    try:
        return config.differences(preset(experiment.name), experiment)
    except ScaeError:
        return []
