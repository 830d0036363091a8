"""The report: one file, ours beside the paper's, everything the run was."""

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from scae import scores
from scae.api import Loaded
from scae.config import Experiment, LossWeights
from scae.figures import FIGURE_LIST
from scae.models import build
from scae.presets import preset
from scae.report import write_report

IMAGES = {
    "dataset": "mnist",
    "lin_match": {"prior": {"train-test": 0.9512, "full": 0.981}, "posterior": {"full": 0.97}},
    "lin_pred": {"prior": {"train-test": 0.985}, "posterior": {}},
    "baselines": {"k-means on pixels": {"full": 0.53}},
    "protocols": {"full": "all images together"},
    "n_train": 60000,
    "n_test": 10000,
    "clusters": 10,
}
SCENES = {
    "dataset": "constellations",
    "segmentation_error": 0.0312,
    "error_at_noise": {"0.1": 0.05},
    "baselines": {"chance": {"segmentation_error": 0.5}},
    "n_scenes": 5000,
    "n_points": 30000,
    "convention": "per scene",
}


def report(
    folder: Path, experiment: Experiment, result: dict[str, object] | None = None
) -> tuple[str, str]:
    """The page's source, and its text outside of styles with spaces merged."""
    loaded = Loaded(build(experiment.model), experiment, folder)
    source = write_report(folder, loaded, result).read_text()
    text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", source, flags=re.DOTALL)
    return source, " ".join(html.unescape(text).split())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "figures").mkdir()
    Image.new("RGB", (40, 30)).save(tmp_path / "figures" / "curves.png")
    figure = {"name": "curves", "title": "Curves", "caption": "What was <learned>."}
    listed = {
        "data": "mnist test: 10000 images",
        "diagnosis": {"parts_present": 15.5, "objects_present": 2.25, "unknown": 1.0},
        "symptoms": ["half of the parts are dead"],
        "figures": [figure | {"file": "curves.png"}],
    }
    (tmp_path / "figures" / FIGURE_LIST).write_text(json.dumps(listed))
    environment = {"commit": "0123456789abcdef", "versions": {"torch": "2.8"}, "resumed": []}
    (tmp_path / "environment.json").write_text(json.dumps(environment))
    return tmp_path


def test_the_page_is_one_file_with_everything(run: Path) -> None:
    source, page = report(run, preset("mnist"), IMAGES)
    links = re.findall(r'(?:src|href)="([^"]*)"', source)
    assert links and all(link.startswith(("data:image/png", "#")) for link in links)
    assert "url(" not in source and "<script" not in source
    assert "prefers-color-scheme: dark" in source
    assert {link[1:] for link in links if link[0] == "#"} <= set(re.findall(r'id="(.*?)"', source))
    for text in (
        "half of the parts are dead",
        "parts present in an image (presence above 0.5) 15.5",
        "What was <learned>.",
        "0123456789",
        "set_transformer.layers 3",
        "versions.torch 2.8",
        "mnist test: 10000 images",
    ):
        assert text in page, text


def test_scores_stand_beside_the_papers(run: Path) -> None:
    text = report(run, preset("mnist"), IMAGES)[1]
    assert "LIN-MATCH, prior presences, train-test 95.12 95.3 (4.65)" in text
    assert "LIN-MATCH, prior presences, full 98.10 98.7 (0.35)" in text
    assert "LIN-MATCH, posterior presences, full 97.00 –" in text
    assert "LIN-PRED, prior presences, train-test 98.50 99.0 (0.07)" in text
    assert "k-means on pixels, LIN-MATCH, full 53.00 –" in text


def test_stored_evaluation_is_read(run: Path) -> None:
    (run / "evaluation.json").write_text(json.dumps(SCENES))
    text = report(run, preset("constellation"))[1]
    assert "segmentation error 3.12 2.8, best; consistently below 4" in text
    assert "noise 0.1 on the points 5.00" in text and "chance 50.00" in text


def test_changes_to_the_preset_are_listed(tmp_path: Path) -> None:
    full = preset("digits")
    short = replace(full, training=replace(full.training, steps=10))
    assert f"training.steps: {full.training.steps} -> 10" in report(tmp_path, short)[1]


def test_text_is_escaped(tmp_path: Path) -> None:
    source, _ = report(tmp_path, replace(preset("digits"), name="<script>alert(1)</script>"))
    assert "<script" not in source and "&lt;script&gt;" in source


def test_ablations_stand_beside_their_own_row() -> None:
    full, linear = preset("mnist"), preset("mnist/linear-part-encoder")
    known = scores.lin_match(linear, "mnist", "train-test")
    assert known and known.mean == 98.0
    assert scores.lin_match(linear, "mnist", "full") is None
    transfer = scores.lin_match(full, "affnist", "train-target")
    assert transfer and transfer.mean == 92.2
    assert scores.lin_pred(linear, "mnist", "train-test") is None
    points = preset("constellation")
    without = replace(points, loss=LossWeights(two_parts=0.0))
    baseline = preset("constellation-baseline")
    for experiment, error in ((points, 2.8), (without, 10), (baseline, 26)):
        value = scores.error(experiment)
        assert value and value.mean == error
