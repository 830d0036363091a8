"""Tables of the paper: their cells, what is kept, continued and refused, and the pages."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scae import config, files
from scae.config import ImageExperiment
from scae.errors import ScaeError
from scae.paper_values import PaperValue
from scae.reproduce import cell, reproduce
from scae.reproduce.plan import DATASETS, Settings, plan
from scae.reproduce.tables import Entry, best_rows

ENVIRONMENT = {"machine": {"processor": "Test CPU", "cores": 2}, "commit": "0123456789"}


def scores(value: float) -> dict[str, Any]:
    """An image evaluation with the same accuracy everywhere."""
    by_protocol = dict.fromkeys(("full", "train-test", "train-target"), value)
    return {
        "lin_match": {"prior": by_protocol},
        "lin_pred": {"prior": by_protocol},
        "baselines": {"k-means on pixels": {"full": 0.5}},
    }


class FakeCells:
    """Writes a result for every cell but those whose name contains `bad`: 90 %, 92 %, ..."""

    def __init__(self, bad: str = "nothing", stop_after: int = 1000) -> None:
        self.bad, self.stop_after, self.ran = bad, stop_after, list[str]()

    def __call__(self, table: Path, name: str) -> str | None:
        if len(self.ran) >= self.stop_after:
            raise KeyboardInterrupt
        self.ran.append(name)
        if self.bad in name:
            return "exit code 1: out of memory"
        cells = {cell.name: cell for cell in plan(table.name, Settings.read(table))}  # type: ignore
        one = cells[name]
        value = 0.9 + 0.02 * one.seed
        if one.dataset == "constellations":
            found: dict[str, Any] = {"constellations": {"segmentation_error": 1 - value}}
        else:
            found = {dataset or one.dataset: scores(value) for dataset in one.scored_on}
        result = one.place() | {"steps": 7, "hours": 0.5, "scores": found}
        files.write_json(table / "cells" / f"{name}.json", result | {"environment": ENVIRONMENT})
        return None


def test_table2_has_all_rows_and_one_change_each() -> None:
    cells = plan("table2", Settings())
    assert len(cells) == len({c.name for c in cells}) == 2 * (3 + 12 * 2)
    full = {c.dataset: c.experiment for c in cells if c.row == "full" and c.seed == 0}
    for c in cells:
        assert c.experiment.training.seed == c.seed
        assert c.scored_on == ((None, "affnist-style") if c.dataset == "mnist40" else (None,))
        changes = config.differences(full[c.dataset], c.experiment)
        fields = {change.split(":")[0].split(".")[0] for change in changes}
        assert fields - {"name", "reference", "training"} <= {"loss", "model"}
        assert isinstance(c.experiment, ImageExperiment) and c.experiment.data.split == "train"


def test_budgets_set_steps_and_seeds() -> None:
    cpu = plan("table1", Settings())
    assert {c.experiment.name for c in cpu} == {"mnist", "cifar10", "svhn"} and len(cpu) == 9
    literal = plan("constellations", Settings("paper"))
    assert len(literal) == 15 and literal[0].experiment.training.steps == 300_000
    smoke = plan("table1", Settings("smoke"))
    assert {c.experiment.data.name for c in smoke} == {"digits"} and smoke[0].limit == 200
    short = plan("table2", Settings(steps=(50, 70), seeds=1), ["full", "b"])
    assert len(short) == 2 * 4
    assert {(c.dataset, c.experiment.training.steps) for c in short} == {
        ("mnist", 50),
        ("mnist40", 70),
    }
    assert all(c.experiment.optimizer.warmup <= 3 for c in short)
    with pytest.raises(ScaeError, match="no row 'no-nois'"):
        plan("table2", Settings(), ["no-nois"])
    with pytest.raises(ScaeError, match="one number or one for each"):
        plan("table2", Settings(steps=(1, 2, 3)))


def test_a_table_is_continued_with_its_settings(tmp_path: Path) -> None:
    options: dict[str, Any] = {"steps": (7,), "seeds": 2, "only": ["full"]}
    first = reproduce("table2", out=tmp_path, launch=FakeCells(), **options)
    assert (first.cells, first.finished, first.failed) == (52, 4, {})
    page = (tmp_path / "table2" / "table2.md").read_text()
    assert "finished: 4 of 52 trainings" in page and "91.0 (1.41)" in page
    launch = FakeCells()
    assert reproduce("table2", out=tmp_path, launch=launch, only=["a"]).finished == 4 + 3 * 2 * 2
    assert len(launch.ran) == 12 and not any(name.startswith("full") for name in launch.ran)
    launch = FakeCells()
    again = reproduce("table2", out=tmp_path, launch=launch, table_only=True)
    assert again.finished == 16 and not launch.ran


def test_cells_of_another_configuration_are_refused(tmp_path: Path) -> None:
    reproduce("constellations", out=tmp_path, launch=FakeCells(), steps=(7,), seeds=1)
    with pytest.raises(ScaeError, match=r"full-constellations-seed0.*training\.steps: 7 -> 8"):
        reproduce("constellations", out=tmp_path, launch=FakeCells(), steps=(8,))
    launch = FakeCells()  # the refused settings were not kept
    assert reproduce("constellations", out=tmp_path, launch=launch).finished == 3 and not launch.ran


def test_failed_cells_are_told_and_tried_again(tmp_path: Path) -> None:
    done = reproduce("constellations", out=tmp_path, launch=FakeCells("baseline"), seeds=2, jobs=2)
    assert set(done.failed) == {f"baseline-constellations-seed{i}" for i in range(2)}
    assert done.finished == 4 and "out of memory" in done.text
    assert "failed: baseline constellations: exit code 1" in done.table.read_text()
    again = reproduce("constellations", out=tmp_path, launch=FakeCells())
    assert again.finished == 6 and not again.failed


def test_an_interruption_keeps_what_is_finished(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        reproduce("constellations", out=tmp_path, launch=FakeCells(stop_after=2))
    page = (tmp_path / "constellations" / "constellations.md").read_text()
    assert "finished: 2 of 9 trainings" in page


def test_all_tables_hold_the_papers_values_and_ours(tmp_path: Path) -> None:
    (tmp_path / "table2").mkdir()
    (tmp_path / "table2" / "notes.md").write_text("Group a) holds.\n")
    done = [reproduce(table, out=tmp_path, launch=FakeCells(), seeds=3) for table in DATASETS]  # type: ignore
    assert [each.finished for each in done] == [each.cells for each in done] == [9, 78, 9]
    one, two, points = (each.table.read_text() for each in done)
    assert "| SCAE, LIN-MATCH | 98.7 (0.35) | **92.0 (2.00)** | −6.7 (p = " in one
    assert "| k-means on pixels | 53.49 | 50.0 (0.00) | −3.5 |" in one
    assert two.count("| full model |") == 2 and "| affNIST-style: ours |" in two
    assert "| 92.2 (0.59) | **92.0 (2.00)** | −0.2 |" in two, "no test against other data"
    assert "| f) | no special features | 90.7 (2.25) |" in two and two.endswith("Group a) holds.\n")
    assert "| baseline (points predicted directly) | 26, best | **8.0 (2.00)** | −18.0 |" in points


def test_bold_rows_are_the_best_and_those_like_it() -> None:
    rows = [(90.0, 90.2), (90.1, 90.3), (50.0, 51.0), (99.0,), ()]
    entries = [Entry(None, ours) for ours in rows]
    assert best_rows(entries) == {0, 1} and best_rows(entries, smaller=True) == {2}
    assert best_rows(entries[3:]) == set()


def test_differences_are_tested_where_both_have_a_deviation() -> None:
    assert Entry(PaperValue(90.0, 1.0, 5), (95.0,)).difference == "+5.0"
    assert Entry(PaperValue(90.0, 1.0, 5), (95.0, 95.2)).difference.startswith("+5.1 (p = 0.00")
    assert Entry(None, (95.0,)).difference == Entry(PaperValue(1.0)).difference == "–"


def test_a_cell_is_resumed_scored_and_cleaned_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table2"
    reproduce("table2", out=tmp_path, steps=(3,), seeds=1, only=["full"], launch=lambda *_: "no")
    name, calls = "full-mnist40-seed0", list[bool]()

    def train(experiment: Any, place: Path, **options: Any) -> Any:
        calls.append(options["resume"])
        (place / "checkpoints").mkdir(parents=True, exist_ok=True)
        (place / "checkpoints" / "step1").touch()
        if len(calls) == 1:
            raise KeyboardInterrupt
        assert experiment.training.steps == 3 and experiment.name == "mnist40"
        return SimpleNamespace(model=None, steps=3, seconds=7200.0)

    def evaluate(model: Any, experiment: Any, dataset: str | None, **_: Any) -> Any:
        return scores(0.9) | {"confusion": {}}

    monkeypatch.setattr(cell, "train", train)
    monkeypatch.setattr(cell, "evaluate", evaluate)
    with pytest.raises(KeyboardInterrupt):
        cell.run(table, name)
    cell.run(table, name)
    assert calls == [False, True] and not list((table / "runs").iterdir())
    written = json.loads((table / "cells" / f"{name}.json").read_text())
    assert written["hours"] == 2 and set(written["scores"]) == {"mnist40", "affnist-style"}
    assert "confusion" not in written["scores"]["mnist40"]
