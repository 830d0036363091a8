"""Every shipped weight file against its recorded result, so that no card drifts from it."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scae import config
from scae.api import load_model, shipped
from scae.config import ConstellationExperiment
from scae.errors import ScaeError
from scae.models import build
from scae.prediction import read_clusters
from scae.presets import preset
from scae.weights_file import save_weights

RESULTS = Path(__file__).parents[1] / "results"
TOLERANCE = 1e-3
RUNS = sorted(RESULTS.glob("*-seed*.json"))


def record() -> Any:
    """The script that records runs, as a module."""
    specification = importlib.util.spec_from_file_location("record", RESULTS / "record.py")
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_runs_of_older_versions_are_saved_with_the_present_preset(tmp_path: Path) -> None:
    experiment = preset("digits")
    old = config.to_json(experiment)
    old["source"] = old.pop("reference")
    old["training"] |= {"seed": 3, "steps": 7, "max_bad_steps": 5}
    (tmp_path / "config.json").write_text(json.dumps(old))
    (tmp_path / "metrics.csv").write_text("step,seconds\n1,9\n7,1800\n")
    save_weights(build(experiment.model), experiment, tmp_path / "weights.safetensors")
    folder, note = record().resave(tmp_path, "digits")
    training = load_model(folder).experiment.training
    assert (training.seed, training.steps, note) == (3, 7, "present preset")
    assert record().made_with(tmp_path)["hours"] == 0.5
    with pytest.raises(SystemExit, match="is not what made"):
        record().resave(tmp_path, "mnist")


@pytest.mark.data
@pytest.mark.parametrize("name", shipped())
def test_shipped_weights_are_those_that_were_scored(name: str) -> None:
    loaded = load_model(name)
    seed = loaded.experiment.training.seed
    result = json.loads((RESULTS / f"{name}-seed{seed}.json").read_text())
    try:
        found = record().presence_mean(loaded.model, loaded.experiment)
    except ScaeError as error:
        pytest.skip(f"the data of {name} is missing: {error}")
    np.testing.assert_allclose(found, result["sample"]["presence_mean"], atol=TOLERANCE)
    folder = shipped()[name]
    assert (folder / "card.md").read_text() == record().card(result)
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
