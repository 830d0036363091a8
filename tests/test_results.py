"""The scripts in results/: scores over time, and the page of what was run and what was not."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import training_runs
from scae.reproduce import reproduce
from test_reproduce import FakeCells, scores

RESULTS = Path(__file__).parents[1] / "results"


def script(name: str) -> Any:
    """A script in results/ as a module."""
    specification = importlib.util.spec_from_file_location(name, RESULTS / f"{name}.py")
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def write(folder: Path, name: str, **values: Any) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(values))


def test_the_page_says_what_was_run_and_what_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = script("pages")
    monkeypatch.setattr(pages, "HERE", tmp_path)
    made = {"preset": "mnist", "command": "scae train mnist", "commit": "0123456789"}
    for seed in (0, 1):
        found = {"evaluation": scores(0.95 + 0.02 * seed), "hours": 1.5}
        write(tmp_path, f"mnist-seed{seed}.json", seed=seed, **made, **found)
    write(tmp_path, "mnist-seed2.json", seed=2, failed="loss not finite", **made)
    own = scores(0.8) | {"n_train": 500, "clusters": 4}
    own["baselines"] = {"k-means on pixels": {"full": 0.5, "train-test": 0.45}}
    write(tmp_path, "images-shapes.json", evaluation=own)
    literal = {"preset": "mnist-paper", "seed": 0, "command": "scae train mnist-paper", "hours": 2}
    literal |= {"steps": 30_000, "planned_steps": 300_000, "steps_per_hour": 15_000}
    logged = [{"step": 500, "image_ll": 1.0}, {"step": 1000, "image_ll": 2.0}]
    literal |= {"hours_left": 18.0, "scores": {"lin_match": 0.31}, "logged": logged}
    write(tmp_path, "literal/mnist-paper.json", **literal)
    (tmp_path / "curves").mkdir()
    (tmp_path / "curves" / "mnist.csv").write_text("step,minutes,lin_match\n9,1,0.5\n18,2,0.7\n")
    reproduce("constellations", out=tmp_path, launch=FakeCells("baseline"), seeds=1)
    page = pages.results_page()
    for text in (
        "| `mnist` | LIN-MATCH | 95.3 (4.65) | 96.0 (1.41) |",
        "[0](mnist-seed0.json) [1](mnist-seed1.json) [2](mnist-seed2.json) failed | 1.5 |",
        "| `mnist40` | LIN-MATCH | 98.7 (0.35) | not run |",
        "| [constellations](constellations/constellations.md) | 2 | 1 | 1.0 |",
        "| table2 | not run |",
        "| 30,000 of 300,000 | 2 | 15,000 | 18 | lin-match 31.0 % | `scae train mnist-paper` |",
        "| `mnist-release` | not run |",
        "| [shapes](images-shapes.json) | 500 | 4 | 80.0 | 45.0 |",
        "](curves.png)",
        "](literal.png)",
    ):
        assert text in page, text
    assert (tmp_path / "curves.png").is_file() and (tmp_path / "literal.png").is_file()
    assert pages.sentences(pages.measured()) == {
        "mnist": "LIN-MATCH 96.0 (1.41) % (paper 95.3 (4.65))"
    }


def test_checkpoints_of_a_run_become_a_curve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curve, target = script("curve"), tmp_path / "curves" / "test.csv"
    monkeypatch.setattr(curve, "SCENES", 20)
    monkeypatch.setattr(curve, "LOGGED_EVERY", 4)
    experiment = training_runs.points_experiment(steps=8, checkpoint_every=4, keep=10)
    training_runs.run(experiment, tmp_path / "run")
    rows = curve.curve(tmp_path / "run", target)
    assert [row["step"] for row in rows] == [4, 8]
    assert 0 <= rows[0]["minutes"] <= rows[1]["minutes"] and 0 <= rows[1]["segmentation_error"] <= 1
    assert target.read_text().splitlines()[0] == "step,minutes,segmentation_error"
    (tmp_path / "run" / "checkpoints" / "step000000004.ckpt").unlink()
    assert curve.curve(tmp_path / "run", target) == rows, "rows of steps that are gone stay"
    record = curve.literal_record(tmp_path / "run", rows, "scae train x", "abc")
    assert (record["steps"], record["planned_steps"], record["hours_left"]) == (8, 8, 0)
    assert [row["step"] for row in record["logged"]] == [4, 8]
