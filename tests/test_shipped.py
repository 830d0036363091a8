"""Every shipped weight file against its recorded result, so that no card drifts from it."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scae import config
from scae.api import Capsules, PointCapsules, load, shipped
from scae.data import load_images
from scae.errors import ScaeError
from scae.evaluation import evaluate, score_clusters
from scae.models import build
from scae.prediction import assign_clusters, read_clusters
from scae.presets import preset
from scae.weights_file import save_weights

RESULTS = Path(__file__).parents[1] / "results"
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
    training = load(folder).experiment.training
    assert (training.seed, training.steps, note) == (3, 7, "present preset")
    assert record().made_with(tmp_path)["hours"] == 0.5
    with pytest.raises(SystemExit, match="is not what made"):
        record().resave(tmp_path, "mnist")


@pytest.mark.data
@pytest.mark.parametrize("name", shipped())
def test_shipped_weights_have_their_recorded_scores(name: str) -> None:
    """The mean presences of 500 examples to 1e-3; the first score, of 2 000 examples, to 4 %."""
    loaded, folder = load(name), shipped()[name]
    seed = loaded.experiment.training.seed
    result = json.loads((RESULTS / f"{name}-seed{seed}.json").read_text())
    try:
        found = record().presence_mean(loaded.model, loaded.experiment)
    except ScaeError as error:
        pytest.skip(f"the data of {name} is missing: {error}")
    np.testing.assert_allclose(found, result["sample"]["presence_mean"], atol=1e-3)
    recorded, score = result["evaluation"], sample_score(loaded)
    if isinstance(loaded, PointCapsules):
        assert score == pytest.approx(recorded["segmentation_error"], abs=0.04)
    else:
        assert score == pytest.approx(recorded["lin_match"]["prior"]["train-test"], abs=0.04)
    assert (folder / "card.md").read_text() == record().card(result)


def sample_score(loaded: Capsules) -> float:
    """Segmentation error, or LIN-MATCH of test images with the clusters that are shipped."""
    if isinstance(loaded, PointCapsules):
        found = evaluate(loaded.model, loaded.experiment, limit=2000)
        return float(found["segmentation_error"])
    data = load_images(loaded.experiment.data, "test")
    assert data.labels is not None
    prior = loaded.presences(data.images[:2000].numpy()).prior
    centres = read_clusters(shipped()[loaded.experiment.name])
    assert centres is not None
    return score_clusters(assign_clusters(prior, centres), data.labels[:2000].numpy()).accuracy


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_recorded_runs_say_where_they_come_from(path: Path) -> None:
    run = json.loads(path.read_text())
    assert path.name == f"{run['preset']}-seed{run['seed']}.json"
    assert run["command"].startswith("scae train ")
    assert run["commit"] and run["machine"] and run["date"]
    assert run.get("failed") or (run["evaluation"] and run["sample"]["presence_mean"])
