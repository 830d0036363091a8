"""What is claimed is what was measured: tables and cards follow from the files in results/."""

import csv
import importlib.util
import json
import re
from pathlib import Path

import pytest

import scae

RESULTS = Path(__file__).parents[1] / "results"
WEIGHTS = Path(__file__).parents[1] / "src" / "scae" / "weights"

specification = importlib.util.spec_from_file_location("record", RESULTS / "record.py")
assert specification and specification.loader
record = importlib.util.module_from_spec(specification)
specification.loader.exec_module(record)

SHIPPED = sorted(path.parent.name for path in WEIGHTS.glob("*/weights.safetensors"))


def test_tables_are_generated_from_the_recorded_runs() -> None:
    assert (RESULTS / "README.md").read_text() == record.page()
    assert record.README.read_text() == record.front_page()
    assert json.loads(record.MEASURED.read_text()) == record.measured()
    assert len(record.results()) > 0


def test_shipped_weights_have_a_card_and_a_recorded_run() -> None:
    runs = {run["preset"]: run for run in record.shipped()}
    assert sorted(runs) == SHIPPED
    for name, run in runs.items():
        assert (WEIGHTS / name / "card.md").read_text() == record.card(run)
        assert record.commits(run)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*-seed*.json")), ids=lambda p: p.name)
def test_recorded_runs_say_where_they_come_from(path: Path) -> None:
    run = json.loads(path.read_text())
    assert path.name == f"{run['preset']}-seed{run['seed']}.json"
    assert run["command"].startswith("scae train ")
    assert run["environment"]["commit"] and run["environment"]["machine"]["processor"]
    assert run["hours"] > 0 and run["steps"] > 0


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_weights_name_no_place_of_the_machine_that_made_them(name: str) -> None:
    start = scae.load(name).experiment.training.start_from
    assert start is None or not Path(start).is_absolute()


TABLE2 = RESULTS / "table2"


def table2_rows() -> list[dict[str, str]]:
    with open(TABLE2 / "table2.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_table2_was_run_to_the_end() -> None:
    rows = table2_rows()
    assert len(rows) == 13 * 3
    assert all((row["finished"], row["failed"], row["not_run"]) == ("1", "0", "0") for row in rows)


def test_table2_is_what_its_runs_scored() -> None:
    for row in table2_rows():
        run = json.loads((TABLE2 / row["runs"] / "result.json").read_text())
        assert run["environment"]["commit"] and run["environment"]["machine"]["processor"]
        elsewhere = row["column"] == "affNIST"
        match = run["transfer" if elsewhere else "own"]["lin_match"]
        protocol = "train-target" if elsewhere else "train-test"
        for kind, name in (("prior", "ours_mean"), ("posterior", "ours_posterior_mean")):
            assert float(row[name]) == pytest.approx(100 * match[kind][protocol], abs=1e-3)
        spec = json.loads((TABLE2 / row["runs"] / "cell.json").read_text())
        assert run["steps"] == spec["experiment"]["training"]["steps"] == 3000


def test_links_of_table2_lead_somewhere() -> None:
    for name in ("table2.md", "README.md"):
        text = (TABLE2 / name).read_text()
        links = re.findall(r"\]\(([^)#]+)\)", text)
        assert links
        for link in links:
            assert link.startswith("https://") or (TABLE2 / link).exists(), link


def test_scores_told_of_table2_are_in_its_runs_or_the_paper() -> None:
    known = {f"{value:.1f}" for row in table2_rows() for value in _numbers(row)}
    for path in TABLE2.glob("cells/*/result.json"):
        own = json.loads(path.read_text())["own"]
        scores = [own[name]["prior"]["train-test"] for name in ("lin_match", "lin_pred")]
        scores += [kinds["train-test"] for kinds in own["baselines"].values()]
        known |= {f"{100 * score:.1f}" for score in scores}
    told = re.findall(r"\b\d+\.\d\b", (TABLE2 / "README.md").read_text())
    assert len(told) > 20
    assert set(told) <= known


def _numbers(row: dict[str, str]) -> list[float]:
    return [float(row[name]) for name in ("paper_mean", "ours_mean", "ours_posterior_mean")]
