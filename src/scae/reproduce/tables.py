"""Tables of the paper as Markdown: its values, ours over seeds, and the test between them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import Any

from scipy.stats import ttest_ind_from_stats

from scae import paper_values as paper
from scae.paper_values import PaperValue
from scae.presets.ablations import ABLATIONS
from scae.reproduce.plan import DATASETS, ROWS, Settings, Target, group

TITLES: dict[Target, str] = {
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
    "affnist-style": "affNIST-style (paper: affNIST)",
    "constellations": "error",
}
NAMES = {
    "full": "full model",
    "no-two-parts": "without the two-parts loss",
    "baseline": "baseline (points predicted directly)",
    **{name: ablation.row for name, ablation in ABLATIONS.items()},
}
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
        return "–"
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


def markdown(
    target: Target, settings: Settings, cells: Sequence[dict[str, Any]], planned: int
) -> str:
    """The page of a table from its finished cells."""
    steps = sorted({cell["steps"] for cell in cells})
    places = [cell["environment"] for cell in cells]
    machines = {
        ", ".join([m["processor"], f"{m['cores']} cores", *m["gpus"]])
        for m in (place["machine"] for place in places)
    }
    facts = {
        "finished": f"{len(cells)} of {planned} trainings",
        "budget": settings.budget,
        "steps": " to ".join(dict.fromkeys(f"{s:,}" for s in (*steps[:1], *steps[-1:]))),
        "training time": f"{sum(cell['hours'] for cell in cells):.1f} h, one thread each",
        "machine": "; ".join(sorted(machines)),
        "commit": ", ".join(sorted({(p.get("commit") or "unknown")[:8] for p in places})),
        "command": f"`scae reproduce {target}`",
    }
    lines = [f"# {TITLES[target]}", ""]
    lines += [*(f"- {name}: {value}" for name, value in facts.items() if value), ""]
    if settings.budget == "smoke":
        lines += ["**A smoke run, no result**: models were hardly trained, on other data.", ""]
    smaller = target == "constellations"
    for caption, columns, rows in _tables(target, settings, cells):
        lines += [f"{caption} {PROTOCOL}", "", *_lines(columns, rows, smaller), ""]
    return "\n".join(lines)


def _tables(
    target: Target, settings: Settings, cells: Sequence[dict[str, Any]]
) -> list[tuple[str, list[str], list[Row]]]:
    """Caption, columns and rows of each table of a page."""
    datasets = DATASETS[target]
    columns = [SHOWN[dataset] for dataset in datasets]

    def ours(row: str, dataset: str, *keys: str) -> tuple[float, ...]:
        mine = [c["scores"] for c in cells if (c["row"], c["dataset"]) == (row, dataset)]
        return tuple(100 * v for v in (lookup(scores, keys) for scores in mine) if v is not None)

    def error(row: str) -> Entry:
        keys = ("constellations", "segmentation_error")
        return Entry(paper.CONSTELLATIONS[row], ours(row, "constellations", *keys))

    if target == "constellations":
        rows: list[Row] = [("", NAMES[row], [error(row)]) for row in ROWS[target]]
        return [("Segmentation error of present points.", columns, rows)]
    if target == "table1":
        rows = [
            ("", f"{name}, from the paper", [Entry(printed.get(d)) for d in datasets])
            for name, printed in paper.TABLE1_OTHERS.items()
        ]
        for name, values, keys in (
            ("k-means on pixels", {}, ("baselines", "k-means on pixels", "full")),
            ("SCAE, LIN-MATCH", paper.TABLE1_LIN_MATCH, ("lin_match", "prior", "full")),
            ("SCAE, LIN-PRED", paper.TABLE1_LIN_PRED, ("lin_pred", "prior", "train-test")),
        ):
            entries = [Entry(values.get(d), ours("full", d, d, *keys)) for d in datasets]
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
            entries.append(Entry(transfer, other))
            rows.append((group(row), NAMES[row], entries))
        tables.append((caption, [*columns, SHOWN[settings.transfer]], rows))
    return tables


def _lines(columns: list[str], rows: list[Row], smaller: bool) -> list[str]:
    head = ["", "", *(text for c in columns for text in (f"{c}: paper", "ours", "difference"))]
    lines = [line(head), line(["---"] * len(head))]
    bold = [best_rows([entries[i] for _, _, entries in rows], smaller) for i in range(len(columns))]
    for number, (letter, name, entries) in enumerate(rows):
        cells = [f"{letter})" if letter else "", name]
        for entry, best in zip(entries, bold, strict=True):
            mark = "**" if number in best else ""
            printed = entry.paper.text if entry.paper else "–"
            cells += [printed, f"{mark}{spread(entry.ours)}{mark}", entry.difference]
        lines.append(line(cells))
    return lines


def line(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(cells)} |"
