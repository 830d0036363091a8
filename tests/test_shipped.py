"""Every shipped weight file against its recorded result, so that no card drifts from it."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from scae.api import load_model, shipped
from scae.config import ConstellationExperiment
from scae.errors import ScaeError
from scae.evaluation import presence_mean
from scae.prediction import read_clusters

RESULTS = Path(__file__).parents[1] / "results"
TOLERANCE = 1e-3
RUNS = sorted(RESULTS.glob("*-seed*.json"))


@pytest.mark.data
@pytest.mark.parametrize("name", shipped())
def test_shipped_weights_are_those_that_were_scored(name: str) -> None:
    loaded = load_model(name)
    seed = loaded.experiment.training.seed
    result = json.loads((RESULTS / f"{name}-seed{seed}.json").read_text())
    try:
        found = presence_mean(loaded.model, loaded.experiment)
    except ScaeError as error:
        pytest.skip(f"the data of {name} is missing: {error}")
    np.testing.assert_allclose(found, result["sample"]["presence_mean"], atol=TOLERANCE)
    specification = importlib.util.spec_from_file_location("record", RESULTS / "record.py")
    assert specification and specification.loader
    record = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(record)
    folder = shipped()[name]
    assert (folder / "card.md").read_text() == record.card(result)
    if not isinstance(loaded.experiment, ConstellationExperiment):
        centres = read_clusters(folder)
        assert centres is not None and centres.shape[1] == loaded.model.config.objects


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_recorded_runs_say_where_they_come_from(path: Path) -> None:
    run = json.loads(path.read_text())
    assert path.name == f"{run['preset']}-seed{run['seed']}.json"
    assert run["command"].startswith("scae train ")
    assert run["commit"] and run["machine"] and run["date"]
    assert run["evaluation"] and run["sample"]["presence_mean"]
