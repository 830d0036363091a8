"""Tables as data: the paper's value, ours over seeds, their difference and the t-test."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scae import paper_values as paper
from scae.evaluation.significance import Comparison, Sample, welch_test
from scae.paper_values import PaperValue
from scae.presets.ablations import ABLATIONS
from scae.reproduce.budgets import Target
from scae.reproduce.plan import TABLE1_DATASETS, TABLE2_ROWS, group
from scae.reproduce.runner import Outcome

SHOWN = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "svhn": "SVHN",
    "mnist40": "40×40 MNIST",
    "affnist": "affNIST",
    "affnist-style": "affNIST-style",
    "digits": "digits",
    "digits-affine": "digits, affine",
    "constellations": "error",
}
POSTERIOR = "posterior"
PRIOR = "prior"
KMEANS = "k-means on pixels"

Score = Callable[[dict[str, Any], str], float | None]
"""A fraction from a cell's result and the kind of presence."""


@dataclass(frozen=True)
class Entry:
    """One place of a table."""

    paper: PaperValue | None
    outcomes: tuple[Outcome, ...] = ()
    values: tuple[float, ...] = ()
    """Per cent, one for each finished run."""
    posterior: tuple[float, ...] = ()
    """The same from posterior presences, where there are such."""
    same_data: bool = True
    """Whether ours were measured on the data the paper names."""
    published: bool = True
    """Only the paper has this number: nothing of ours belongs here."""

    @property
    def failed(self) -> int:
        return sum(outcome.status == "failed" for outcome in self.outcomes)

    @property
    def ours(self) -> Sample | None:
        """Mean and deviation over seeds."""
        return sample(self.values)

    @property
    def comparison(self) -> Comparison | None:
        """Ours against the paper's; no test across different data."""
        if self.ours is None or self.paper is None:
            return None
        nan = float("nan")
        sd = nan if self.paper.sd is None else self.paper.sd
        printed = Sample(self.paper.mean, sd, self.paper.n or 0)
        found = welch_test(self.ours, printed)
        return found if self.same_data else Comparison(found.difference, None, None)

    @property
    def ours_text(self) -> str:
        """Mean (standard deviation), or why there is none."""
        if self.published:
            return "–"
        note = f"{self.failed} of {len(self.outcomes)} failed" if self.failed else ""
        if self.ours is None:
            return ("failed" if self.failed == len(self.outcomes) else note) or "not run"
        spread = f" ({self.ours.sd:.2f})" if self.ours.n > 1 else ""
        return f"{self.ours.mean:.1f}{spread}" + (f", {note}" if note else "")

    @property
    def difference_text(self) -> str:
        """Difference and verdict, e.g. `-1.2, differs (p = 0.003)`."""
        found = self.comparison
        if found is None:
            return "–"
        test = str(found) if self.same_data else "n/a: other data"
        return f"{found.difference:+.1f}, {test}".replace("-", "−", found.difference < 0)


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    name: str
    group: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Column:
    """A data set, under the paper's name and under that of the data actually used."""

    name: str
    ours: str


@dataclass(frozen=True)
class Table:
    """A table of the paper with ours beside it."""

    target: Target
    title: str
    metric: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    smaller_is_better: bool = False

    def best(self, column: int) -> set[int]:
        """Rows to set in bold, as the paper does: the best of ours and those not below it.

        "Not below" means that the two-sided t-test at 98 % finds no difference, so without
        two seeds nothing is bold.
        """
        entries = {i: row.entries[column].ours for i, row in enumerate(self.rows)}
        found = {i: ours for i, ours in entries.items() if ours is not None and ours.n > 1}
        if not found:
            return set()
        sign = -1 if self.smaller_is_better else 1
        top = max(found.values(), key=lambda ours: sign * ours.mean)
        return {i for i, ours in found.items() if not welch_test(ours, top).significant}


def sample(values: Sequence[float]) -> Sample | None:
    """Mean and (n - 1) deviation; None without values."""
    if not values:
        return None
    sd = statistics.stdev(values) if len(values) > 1 else float("nan")
    return Sample(statistics.fmean(values), sd, len(values))


def make_table(target: Target, outcomes: Sequence[Outcome]) -> Table:
    """The table of a target from the outcomes of its cells."""
    return {"table1": _table1, "table2": _table2, "constellations": _constellations}[target](
        outcomes
    )


def _table1(outcomes: Sequence[Outcome]) -> Table:
    rows = []
    for method in paper.TABLE1_OTHERS:
        entries = [
            _entry(outcomes, "full", d, method.values.get(d), _pixel_kmeans)
            if method.name == "KMEANS"
            else Entry(method.values.get(d))
            for d in TABLE1_DATASETS
        ]
        rows.append(Row(f"{method.name} ({method.source})", "", tuple(entries)))
    for name, values, score in (
        ("SCAE (LIN-MATCH)", paper.TABLE1_LIN_MATCH, _own("lin_match", "full")),
        ("SCAE (LIN-PRED)", paper.TABLE1_LIN_PRED, _own("lin_pred", "train-test")),
    ):
        found = [_entry(outcomes, "full", d, values[d], score) for d in TABLE1_DATASETS]
        rows.append(Row(name, "", tuple(found)))
    return Table(
        "table1",
        "Table 1: unsupervised classification",
        "accuracy in %: LIN-MATCH on full data sets, LIN-PRED on test splits; prior presences",
        tuple(_column(outcomes, d) for d in TABLE1_DATASETS),
        tuple(rows),
    )


def _table2(outcomes: Sequence[Outcome]) -> Table:
    own, other = _own("lin_match", "train-test"), _transfer("lin_match", "train-target")
    rows = []
    for row in TABLE2_ROWS:
        values = paper.TABLE2[row]
        entries = (
            _entry(outcomes, row, "mnist", values["mnist"], own),
            _entry(outcomes, row, "mnist40", values["mnist40"], own),
            _entry(outcomes, row, "mnist40", values["affnist"], other, transfer=True),
        )
        name = ABLATIONS[row].row if row in ABLATIONS else "full model"
        rows.append(Row(name, group(row), entries))
    return Table(
        "table2",
        "Table 2: ablation study",
        "LIN-MATCH accuracy in % on test splits, clusters fitted on training images; prior "
        "presences",
        (
            _column(outcomes, "mnist"),
            _column(outcomes, "mnist40"),
            Column(SHOWN["affnist"], SHOWN.get(_transfer_name(outcomes), "affNIST")),
        ),
        tuple(rows),
    )


def _constellations(outcomes: Sequence[Outcome]) -> Table:
    names = {
        "full": "CCAE",
        "no-two-parts": "CCAE without the two-parts loss",
        "baseline": "baseline (points predicted directly)",
    }
    rows = [
        Row(name, "", (_entry(outcomes, row, "constellations", paper.CONSTELLATIONS[row], _error),))
        for row, name in names.items()
    ]
    column = Column(SHOWN["constellations"], SHOWN["constellations"])
    metric = "segmentation error in % of present points, full Hungarian match in each scene"
    title = "Constellations: section 3.1"
    return Table("constellations", title, metric, (column,), tuple(rows), smaller_is_better=True)


def _entry(
    outcomes: Sequence[Outcome],
    row: str,
    dataset: str,
    printed: PaperValue | None,
    score: Score,
    transfer: bool = False,
) -> Entry:
    mine = tuple(o for o in outcomes if o.cell.row == row and o.cell.dataset == dataset)
    results = [o.result for o in mine if o.result is not None]
    priors = [score(result, PRIOR) for result in results]
    posteriors = [score(result, POSTERIOR) for result in results]
    same = all(o.cell.stand_in is None for o in mine)
    if transfer:
        same = all(o.cell.evaluation.transfer == "affnist" for o in mine)
    return Entry(
        printed,
        mine,
        tuple(100 * value for value in priors if value is not None),
        tuple(100 * value for value in posteriors if value is not None),
        same,
        published=False,
    )


def _column(outcomes: Sequence[Outcome], dataset: str) -> Column:
    used = next((o.cell.stand_in for o in outcomes if o.cell.dataset == dataset), None)
    return Column(SHOWN[dataset], SHOWN[used or dataset])


def _transfer_name(outcomes: Sequence[Outcome]) -> str:
    found = (o.cell.evaluation.transfer for o in outcomes if o.cell.dataset == "mnist40")
    return next(found, None) or "affnist"


def _own(metric: str, protocol: str) -> Score:
    return lambda result, presence: result["own"][metric][presence].get(protocol)


def _transfer(metric: str, protocol: str) -> Score:
    return lambda result, presence: result["transfer"][metric][presence].get(protocol)


def _pixel_kmeans(result: dict[str, Any], presence: str) -> float | None:
    if presence == POSTERIOR:
        return None
    value: float | None = result["own"]["baselines"].get(KMEANS, {}).get("full")
    return value


def _error(result: dict[str, Any], presence: str) -> float | None:
    return None if presence == POSTERIOR else float(result["own"]["segmentation_error"])


def run_links(entry: Entry, out: Path) -> list[tuple[int, str, str]]:
    """Seed, path from the table's folder and status of every run behind an entry."""
    return [
        (o.cell.seed, o.folder.relative_to(out).as_posix() + "/", o.status)
        for o in entry.outcomes
        if o.status != "not run"
    ]
