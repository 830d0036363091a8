"""Tables of the paper as Markdown: its values, ours over seeds, and the test between them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from scipy.stats import ttest_ind_from_stats

from scae import paper_values as paper
from scae.paper_values import PaperValue
from scae.presets.ablations import ABLATIONS
from scae.reproduce.plan import DATASETS, ROWS, Settings, group

TITLES = {
    "table1": "Table 1: unsupervised classification",
    "table2": "Table 2: ablations",
    "constellations": "Constellations (section 3.1)",
}
SHOWN = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "svhn": "SVHN",
    "mnist40": "40×40 MNIST",
    "affnist": "affNIST",
    "affnist-style": "affNIST-style",
    "constellations": "error",
}
NAMES = {
    "full": "full model",
    "no-two-parts": "without the two-parts loss",
    "baseline": "baseline (points predicted directly)",
    **{name: ablation.row for name, ablation in ABLATIONS.items()},
}
NOTES = "notes.md"
"""Text beside the cells that goes below the tables: what holds here and what does not."""
LEVEL = 0.98
"""Confidence level of the paper's bold face."""
PROTOCOL = (
    "Mean (standard deviation) over seeds, in %. Difference: ours minus the paper's, with the p "
    "value of Welch's t-test where both have a deviation. Bold: the best of ours and those that "
    "the test at the 98 % level cannot tell from it."
)


@dataclass(frozen=True)
class Entry:
    """One place of a table: the paper's value and ours, one per finished seed, in per cent."""

    paper: PaperValue | None
    ours: tuple[float, ...] = ()

    @property
    def difference(self) -> str:
        """Ours minus the paper's and, where both have a deviation, the p value."""
        if self.paper is None or not self.ours:
            return "–"
        text = f"{mean(self.ours) - self.paper.mean:+.1f}".replace("-", "−")
        if self.paper.sd is None or self.paper.n is None or len(self.ours) < 2:
            return text
        printed = (self.paper.mean, self.paper.sd, self.paper.n)
        return f"{text} (p = {welch_p_value(sample(self.ours), printed):.2g})"


Row = tuple[str, str, list[Entry]]
"""Group, name and one entry per column."""
Sample = tuple[float, float, int]
"""Mean, standard deviation and number of two or more values."""


def sample(values: Sequence[float]) -> Sample:
    """A sample's summary."""
    return mean(values), stdev(values), len(values)


def welch_p_value(first: Sample, second: Sample) -> float:
    """Two-sided Welch test that two means are equal."""
    if first[1] == second[1] == 0:
        return float(first[0] == second[0])
    return float(ttest_ind_from_stats(*first, *second, equal_var=False).pvalue)


def spread(values: Sequence[float]) -> str:
    """Mean and, of more than one value, standard deviation."""
    if not values:
        return "not run"
    deviation = f" ({stdev(values):.2f})" if len(values) > 1 else ""
    return f"{mean(values):.1f}{deviation}"


def lookup(scores: Any, keys: Sequence[str]) -> float | None:
    """A number in nested dictionaries, if it is there."""
    for key in keys:
        if not isinstance(scores, dict) or key not in scores:
            return None
        scores = scores[key]
    return float(scores)


def best_rows(entries: Sequence[Entry], smaller: bool = False) -> set[int]:
    """Rows to set in bold, as the paper does; none without two seeds."""
    known = {i: sample(entry.ours) for i, entry in enumerate(entries) if len(entry.ours) > 1}
    if not known:
        return set()
    best = (min if smaller else max)(known.values())
    return {i for i, s in known.items() if s == best or welch_p_value(s, best) >= 1 - LEVEL}


def markdown_table(rows: Sequence[dict[str, str]]) -> str:
    """A Markdown table with the keys of the rows as its head."""
    if not rows:
        return ""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def markdown(
    folder: Path, settings: Settings, results: Sequence[dict[str, Any]], planned: int
) -> str:
    """The page of the table in a folder from the results of its cells."""
    target = folder.name
    cells = [result for result in results if "failed" not in result]
    failed = [result for result in results if "failed" in result]
    steps = {d: sorted({c["steps"] for c in cells if c["dataset"] == d}) for d in DATASETS[target]}
    places = [cell["environment"] for cell in cells]
    machines = {f"{p['machine']['processor']}, {p['machine']['cores']} cores" for p in places}
    facts = {
        "finished": f"{len(cells)} of {planned} trainings",
        "failed": "; ".join(f"{r['row']} {r['dataset']}: {r['failed']}" for r in failed),
        "budget": settings.budget,
        "steps": ", ".join(f"{d} {n:,}" for d, numbers in steps.items() for n in numbers),
        "training time": f"{sum(cell['hours'] for cell in cells):.1f} h, one thread each",
        "machine": "; ".join(sorted(machines)),
        "commit": ", ".join(sorted({(p.get("commit") or "unknown")[:8] for p in places})),
        "command": f"`scae reproduce {target}`",
    }
    parts = [f"# {TITLES[target]}"]
    parts.append("\n".join(f"- {name}: {value}" for name, value in facts.items() if value))
    if settings.budget == "smoke":
        parts.append("**A smoke run, no result**: models were hardly trained, on other data.")
    for caption, columns, rows in _tables(target, settings, cells):
        smaller = target == "constellations"
        parts += [f"{caption} {PROTOCOL}", _table(columns, rows, smaller)]
    if (folder / NOTES).is_file():
        parts.append((folder / NOTES).read_text(encoding="utf-8").strip())
    return "\n\n".join(parts) + "\n"


def _table(columns: list[str], rows: list[Row], smaller: bool) -> str:
    bold = [best_rows([entries[i] for _, _, entries in rows], smaller) for i in range(len(columns))]
    lines = []
    for number, (letter, name, entries) in enumerate(rows):
        line = {"group": f"{letter})" if letter else "", "row": name}
        for column, entry, best in zip(columns, entries, bold, strict=True):
            mark = "**" if number in best else ""
            line[f"{column}: paper"] = entry.paper.text if entry.paper else "–"
            line[f"{column}: ours"] = f"{mark}{spread(entry.ours)}{mark}"
            line[f"{column}: difference"] = entry.difference
        lines.append(line)
    return markdown_table(lines)


def _tables(
    target: str, settings: Settings, cells: Sequence[dict[str, Any]]
) -> list[tuple[str, list[str], list[Row]]]:
    """Caption, columns and rows of each table of a page."""
    datasets = DATASETS[target]
    columns = [SHOWN[dataset] for dataset in datasets]

    def ours(row: str, dataset: str, *keys: str) -> tuple[float, ...]:
        mine = [c["scores"] for c in cells if (c["row"], c["dataset"]) == (row, dataset)]
        return tuple(100 * v for v in (lookup(scores, keys) for scores in mine) if v is not None)

    if target == "constellations":
        keys = ("constellations", "segmentation_error")
        errors = {row: ours(row, "constellations", *keys) for row in ROWS[target]}
        rows: list[Row] = [
            ("", NAMES[row], [Entry(paper.CONSTELLATIONS[row], errors[row])]) for row in errors
        ]
        return [("Segmentation error of present points.", columns, rows)]
    if target == "table1":
        rows = []
        for name, values, where in (
            ("k-means on pixels", paper.TABLE1_KMEANS, ("baselines", "k-means on pixels", "full")),
            ("SCAE, LIN-MATCH", paper.TABLE1_LIN_MATCH, ("lin_match", "prior", "full")),
            ("SCAE, LIN-PRED", paper.TABLE1_LIN_PRED, ("lin_pred", "prior", "train-test")),
        ):
            entries = [Entry(values.get(d), ours("full", d, d, *where)) for d in datasets]
            rows.append(("", name, entries))
        return [("Accuracy; LIN-MATCH on all images, LIN-PRED on test images.", columns, rows)]
    tables = []
    for field, caption in (
        ("lin_match", "LIN-MATCH on test images, clusters fitted on training images."),
        ("lin_pred", "LIN-PRED on test images (the paper has none of it here)."),
    ):
        rows = []
        for row in ROWS[target]:
            known = paper.TABLE2[row] if field == "lin_match" else {}
            scored = [(d, ours(row, d, d, field, "prior", "train-test")) for d in datasets]
            entries = [Entry(known.get(d), values) for d, values in scored]
            transfer = known.get("affnist")
            if transfer and settings.transfer != "affnist":
                transfer = replace(transfer, n=None)  # other data than the paper's: no test
            other = ours(row, "mnist40", settings.transfer, field, "prior", "train-target")
            rows.append((group(row), NAMES[row], [*entries, Entry(transfer, other)]))
        if settings.transfer != "affnist":
            caption += (
                " affNIST-style is generated the same way; the paper's numbers are affNIST's."
            )
        tables.append((caption, [*columns, SHOWN[settings.transfer]], rows))
    return tables
