"""`report.html` of a run: results beside the paper's, warnings, figures, everything it was."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import scae
from scae import files
from scae.config import Experiment
from scae.errors import ScaeError
from scae.evaluation import ConstellationResult, ImageResult
from scae.figures.curves import Columns
from scae.presets import preset
from scae.report import page, paper
from scae.report.caveats import run_warnings
from scae.report.page import Cell
from scae.report.paper import Quoted

Result = ImageResult | ConstellationResult | Mapping[str, Any]


def write_report(
    folder: Path | str,
    experiment: Experiment,
    results: Result | None,
    figures: Sequence[Path],
    metrics: Columns | None = None,
) -> Path:
    """Write `report.html` into a run folder: one file that opens anywhere, offline.

    `results` is an evaluation or the dictionary of an `evaluation.json`; of `figures` the PNG
    files are embedded. `environment.json` and `diagnostics.csv` are read from the folder.
    """
    folder = Path(folder)
    scores = _plain(results)
    environment = _read_environment(folder)
    pictures = [page.read_picture(path) for path in figures if path.suffix == ".png"]
    warnings = run_warnings(folder, experiment, scores, metrics, environment)
    sections = [
        _head(experiment, environment, metrics, bool(pictures)),
        _warnings(warnings),
        _results(experiment, scores),
        _figures(pictures),
        _training(metrics),
        _configuration(experiment),
        _environment(environment),
        f'<p class="soft">Written by scae {page.text(scae.__version__)}. This page needs no '
        "network.</p>",
    ]
    path = folder / "report.html"
    files.write_text(path, page.document(f"{experiment.name} – scae report", sections))
    return path


def _plain(results: Result | None) -> dict[str, Any]:
    if results is None:
        return {}
    return dict(results) if isinstance(results, Mapping) else results.to_dict()


def _read_environment(folder: Path) -> dict[str, Any]:
    try:
        value = json.loads((folder / "environment.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def last(metrics: Columns | None, column: str) -> float | None:
    """The last recorded value of a column, None where there is none."""
    values = [] if metrics is None else [v for v in metrics.get(column, ()) if math.isfinite(v)]
    return values[-1] if values else None


def _head(
    experiment: Experiment,
    environment: Mapping[str, Any],
    metrics: Columns | None,
    has_figures: bool,
) -> str:
    steps, seconds = last(metrics, "step"), last(metrics, "seconds")
    facts = {
        "data": experiment.data.name,
        "steps": f"{steps:,.0f} of {experiment.training.steps:,}" if steps is not None else None,
        "training time": duration(seconds) if seconds is not None else None,
        "batch": f"{experiment.training.batch}",
        "seed": f"{experiment.training.seed}",
        "started": environment.get("started"),
        "commit": str(environment["commit"])[:10] if environment.get("commit") else None,
    }
    items = "".join(
        f"<li><span>{page.text(name)}</span><b>{page.text(value)}</b></li>"
        for name, value in facts.items()
        if value
    )
    links = ["results", *(["figures"] if has_figures else []), "training", "configuration"]
    nav = "".join(f'<a href="#{link}">{link.capitalize()}</a>' for link in links)
    return (
        f"<header><h1>{page.text(experiment.name)}</h1>"
        f'<p class="soft">{page.text(experiment.source)}</p>'
        f'<ul class="facts">{items}</ul><nav aria-label="Sections">{nav}</nav></header>'
    )


def duration(seconds: float) -> str:
    """Seconds in words a person would use."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _warnings(warnings: Sequence[str]) -> str:
    if not warnings:
        return ""
    items = "".join(f"<li>{page.text(warning)}</li>" for warning in warnings)
    return (
        '<section class="warnings" role="note" aria-label="Warnings"><h2>Before you quote these '
        f"numbers</h2><ul>{items}</ul></section>"
    )


def _results(experiment: Experiment, scores: Mapping[str, Any]) -> str:
    head = '<section id="results"><h2>Results</h2>'
    if not scores:
        return head + "<p>This model has not been evaluated.</p></section>"
    if "segmentation_error" in scores:
        rows = [_row("Segmentation error", scores["segmentation_error"],
                     paper.segmentation_error(experiment))]  # fmt: skip
        rows += [
            _row(f"{name.capitalize()} (no model)", baseline["segmentation_error"], None)
            for name, baseline in scores.get("baselines", {}).items()
        ]
        note = f"{scores['n_scenes']:,} scenes, {scores['n_points']:,} points; lower is better"
        details = f"<p class='soft'>{page.text(scores.get('convention', ''))}.</p>"
    else:
        rows = _image_rows(experiment, scores)
        note = (
            f"{scores['dataset']}: {scores['n_train']:,} training images, "
            f"{scores['n_test']:,} held out, {scores['clusters']} clusters; higher is better"
        )
        protocols = scores.get("protocols", {})
        details = "".join(
            f"<p class='soft'>Protocol <b>{page.text(name)}</b>: {page.text(meaning)}.</p>"
            for name, meaning in protocols.items()
        )
    columns = ("in %", Cell("here"), Cell("paper"), Cell("difference"), "paper, where")
    return head + page.table(columns, rows, note) + details + "</section>"


def _image_rows(experiment: Experiment, scores: Mapping[str, Any]) -> list[list[str | Cell]]:
    dataset = scores["dataset"]
    rows = []
    for metric, field, lookup in (
        ("LIN-MATCH", "lin_match", paper.lin_match),
        ("LIN-PRED", "lin_pred", paper.lin_pred),
    ):
        for level in ("prior", "posterior"):
            for protocol, value in scores[field][level].items():
                known = lookup(experiment, dataset, protocol) if level == "prior" else None
                rows.append(_row(f"{metric}, {level} presences, {protocol}", value, known))
    for name, baseline in scores.get("baselines", {}).items():
        for protocol, value in baseline.items():
            rows.append(_row(f"{name} (no model), LIN-MATCH, {protocol}", value, None))
    return rows


def _row(name: str, value: float, known: Quoted | None) -> list[str | Cell]:
    percent = 100 * value
    if known is None:
        return [name, Cell(f"{percent:.2f}"), Cell("–"), Cell("–"), ""]
    difference = f"{percent - known.value.mean:+.2f}".replace("-", "−")
    return [name, Cell(f"{percent:.2f}"), Cell(known.value.text), Cell(difference), known.where]


def _figures(pictures: Sequence[page.Picture]) -> str:
    if not pictures:
        return ""
    body = "\n".join(page.figure(picture) for picture in pictures)
    return f'<section id="figures"><h2>Figures</h2>\n{body}\n</section>'


def _training(metrics: Columns | None) -> str:
    if not metrics or last(metrics, "step") is None:
        return '<section id="training"><h2>Training</h2><p>No metrics were recorded.</p></section>'
    rows: list[list[str | Cell]] = []
    for name, values in metrics.items():
        finite = [v for v in values if math.isfinite(v)]
        if finite and name != "step":
            rows.append([name, Cell(f"{finite[0]:.5g}"), Cell(f"{finite[-1]:.5g}")])
    body = page.table(("column of metrics.csv", Cell("first"), Cell("last")), rows, "")
    return f'<section id="training"><h2>Training</h2>{body}</section>'


def _configuration(experiment: Experiment) -> str:
    standard: dict[str, str] = {}
    try:
        standard = _flat(preset(experiment.name))
        note = "fields in bold differ from the preset of this name"
    except ScaeError:
        note = "there is no preset of this name to compare with"
    rows = _flat(experiment)
    parts = []
    for group in ("model", "loss", "data", "optimizer", "training"):
        fields = {k: v for k, v in rows.items() if k.startswith(f"{group}.")}
        changed = [bool(standard) and standard.get(k) != v for k, v in fields.items()]
        body = page.table(("field", "value"), [[k, v] for k, v in fields.items()], "", changed)
        differ = f" – {sum(changed)} changed" if any(changed) else ""
        parts.append(f"<details><summary>{group}{differ}</summary>{body}</details>")
    return (
        f'<section id="configuration"><h2>Configuration</h2><p class="soft">{page.text(note)}.</p>'
        f"{''.join(parts)}</section>"
    )


def _flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Fields of nested dataclasses (or dictionaries) by dotted name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        found: dict[str, str] = {}
        for key, item in value.items():
            found |= _flat(item, f"{prefix}.{key}" if prefix else str(key))
        return found
    if isinstance(value, (list, tuple)):
        return {prefix: ", ".join(map(str, value)) or "–"}
    return {prefix: "–" if value is None else str(value)}


def _environment(environment: Mapping[str, Any]) -> str:
    if not environment:
        return ""
    resumed = environment.get("resumed")
    shown = {key: value for key, value in environment.items() if key != "resumed"}
    rows = list(_flat(shown).items())
    if resumed:
        rows.append(("resumed", f"{len(resumed)} times"))
    body = page.table(("field", "value"), rows, "")
    return (
        f'<section id="environment"><h2>Environment</h2><details><summary>versions and machine'
        f"</summary>{body}</details></section>"
    )
