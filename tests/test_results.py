"""What is claimed is what was measured: tables and cards follow from the files in results/."""

import importlib.util
import json
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


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_weights_have_a_card_and_a_recorded_run(name: str) -> None:
    cards = [record.card(run) for run in record.results()[name]]
    assert (WEIGHTS / name / "card.md").read_text() in cards


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
