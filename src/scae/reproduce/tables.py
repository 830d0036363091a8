"""Tables of the paper as Markdown: its values, ours over seeds, and the test between them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import Any

from scipy.stats import ttest_ind_from_stats

from scae import paper_values as paper
from scae.paper_values import PaperValue
from scae.presets.ablations import ABLATIONS
from scae.reproduce.plan import DATASETS, ROWS, Settings, Target, group

LEVEL = 0.02
"""The paper sets in bold what a two-sided t-test at 98 % does not find below the best."""
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
PROTOCOL = (
    "Mean (standard deviation) over seeds, in %. Difference: ours minus the paper's, with the p "
    "value of Welch's t-test where both have a deviation. Bold: the best of ours and those that "
    "the test at the 98 % level cannot tell from it."
)

CellResult = dict[str, Any]
Score = Callable[[CellResult], float | None]


@dataclass(frozen=True)
class Entry:
    """One place of a table: the paper's value and ours, one per finished seed, in per cent."""

    paper: PaperValue | None
    ours: tuple[float, ...] = ()

    @property
    def text(self) -> str:
        """Mean (standard deviation) of ours."""
        return spread(self.ours) if self.ours else "–"

    @property
    def difference(self) -> str:
        """Ours minus the paper's and, where both have a deviation, the p value."""
        if self.paper is None or not self.ours:
            return "–"
        text = f"{mean(self.ours) - self.paper.mean:+.1f}".replace("-", "−")
        if self.paper.sd is None or self.paper.n is None or len(self.ours) < 2:
            return text
        p = welch(self.ours, (self.paper.mean, self.paper.sd, self.paper.n))
        return f"{text} (p = {p:.2g})"


def spread(values: Sequence[float]) -> str:
    """Mean and, of more than one value, standard deviation."""
    deviation = f" ({stdev(values):.2f})" if len(values) > 1 else ""
    return f"{mean(values):.1f}{deviation}"


def welch(ours: Sequence[float], other: tuple[float, float, int]) -> float:
    """P value of Welch's two-sided t-test of a sample against a mean, deviation and size."""
    if stdev(ours) == 0 and other[1] == 0:
        return float(mean(ours) == other[0])
    test = ttest_ind_from_stats(mean(ours), stdev(ours), len(ours), *other, equal_var=False)
    return float(test.pvalue)


def best_rows(entries: Sequence[Entry], smaller: bool = False) -> set[int]:
    """Rows to set in bold; none without two seeds."""
    known = {i: entry.ours for i, entry in enumerate(entries) if len(entry.ours) > 1}
    if not known:
        return set()
    best = (min if smaller else max)(known.values(), key=mean)
    sample = (mean(best), stdev(best), len(best))
    return {i for i, ours in known.items() if ours == best or welch(ours, sample) >= LEVEL}


def markdown(target: Target, settings: Settings, cells: Sequence[CellResult], planned: int) -> str:
    """The page of a table from its finished cells."""
    title = {
        "table1": "Table 1: unsupervised classification",
        "table2": "Table 2: ablations",
        "constellations": "Constellations (section 3.1)",
    }[target]
    lines = [f"# {title}", "", *_facts(target, settings, cells, planned), ""]
    if settings.budget == "smoke":
        lines += ["**A smoke run, no result**: models were hardly trained, on other data.", ""]
    for caption, columns, rows, smaller in _tables(target, settings, cells):
        lines += [f"{caption} {PROTOCOL}", "", *_rows(columns, rows, smaller), ""]
    return "\n".join(lines)


def _facts(
    target: Target, settings: Settings, cells: Sequence[CellResult], planned: int
) -> list[str]:
    steps = sorted({cell["steps"] for cell in cells})
    machines = {_machine(cell["environment"]) for cell in cells}
    commits = {(cell["environment"].get("commit") or "unknown")[:8] for cell in cells}
    facts = {
        "finished": f"{len(cells)} of {planned} trainings",
        "budget": settings.budget,
        "steps": " to ".join(dict.fromkeys(f"{s:,}" for s in (*steps[:1], *steps[-1:]))),
        "training time": f"{math.fsum(cell['hours'] for cell in cells):.1f} h, one thread each",
        "machine": "; ".join(sorted(machines)),
        "commit": ", ".join(sorted(commits)),
        "command": f"`scae reproduce {target}`",
    }
    return [f"- {name}: {value}" for name, value in facts.items() if value]


def _machine(environment: dict[str, Any]) -> str:
    machine = environment["machine"]
    return ", ".join([machine["processor"], f"{machine['cores']} cores", *machine["gpus"]])


Row = tuple[str, str, list[Entry]]
"""Group, name and one entry per column."""


def _tables(
    target: Target, settings: Settings, cells: Sequence[CellResult]
) -> list[tuple[str, list[str], list[Row], bool]]:
    """Caption, columns, rows and whether smaller is better, for each table of a page."""

    def ours(row: str, dataset: str, score: Score) -> tuple[float, ...]:
        mine = [c for c in cells if c["row"] == row and c["dataset"] == dataset]
        return tuple(100 * v for v in map(score, mine) if v is not None)

    columns = [SHOWN[dataset] for dataset in DATASETS[target]]
    if target == "constellations":
        rows = [
            (
                "",
                NAMES[row],
                [Entry(paper.CONSTELLATIONS[row], ours(row, "constellations", _error))],
            )
            for row in ROWS[target]
        ]
        return [("Segmentation error of present points.", columns, rows, True)]
    if target == "table1":
        rows = [
            ("", f"{name}, from the paper", [Entry(values.get(d)) for d in DATASETS[target]])
            for name, values in paper.TABLE1_OTHERS.items()
        ]
        for name, values, score in (
            ("k-means on pixels", {}, _pixels),
            ("SCAE, LIN-MATCH", paper.TABLE1_LIN_MATCH, _score("lin_match", "full")),
            ("SCAE, LIN-PRED", paper.TABLE1_LIN_PRED, _score("lin_pred", "train-test")),
        ):
            entries = [Entry(values.get(d), ours("full", d, score)) for d in DATASETS[target]]
            rows.append(("", name, entries))
        return [
            ("Accuracy; LIN-MATCH on all images, LIN-PRED on test images.", columns, rows, False)
        ]
    target_set = settings.transfer
    columns = [*columns, SHOWN[target_set]]
    tables = []
    for field, caption in (
        ("lin_match", "LIN-MATCH on test images, clusters fitted on training images."),
        ("lin_pred", "LIN-PRED on test images (the paper has none of it here)."),
    ):
        rows = []
        for row in ROWS[target]:
            printed = paper.TABLE2[row] if field == "lin_match" else {}
            own = _score(field, "train-test")
            other = _score(field, "train-target", target_set)
            entries = [Entry(printed.get(d), ours(row, d, own)) for d in DATASETS[target]]
            known = printed.get("affnist")
            if known and target_set != "affnist":
                known = replace(known, n=None)  # other data than the paper's: no test
            entries.append(Entry(known, ours(row, "mnist40", other)))
            rows.append((group(row), NAMES[row], entries))
        tables.append((caption, columns, rows, False))
    return tables


def _score(field: str, protocol: str, dataset: str | None = None) -> Score:
    """A score from prior presences; `dataset` is None for the cell's own."""

    def read(cell: CellResult) -> float | None:
        scores = cell["scores"].get(dataset or cell["dataset"])
        value: float | None = scores and scores[field]["prior"].get(protocol)
        return value

    return read


def _pixels(cell: CellResult) -> float | None:
    baselines = cell["scores"][cell["dataset"]]["baselines"]
    value: float | None = baselines.get("k-means on pixels", {}).get("full")
    return value


def _error(cell: CellResult) -> float:
    return float(cell["scores"]["constellations"]["segmentation_error"])


def _rows(columns: list[str], rows: list[Row], smaller: bool) -> list[str]:
    head = ["", ""]
    for name in columns:
        head += [f"{name}: paper", "ours", "difference"]
    lines = [line(head), line(["---"] * len(head))]
    bold = [best_rows([entries[i] for _, _, entries in rows], smaller) for i in range(len(columns))]
    for number, (letter, name, entries) in enumerate(rows):
        cells = [f"{letter})" if letter else "", name]
        for i, entry in enumerate(entries):
            ours = f"**{entry.text}**" if number in bold[i] else entry.text
            cells += [entry.paper.text if entry.paper else "–", ours, entry.difference]
        lines.append(line(cells))
    return lines


def line(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(cells)} |"
