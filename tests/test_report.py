"""The report of a run: one file, safe, honest about what it shows."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from scae.training.diagnostics import Diagnosis

from scae.config import LossWeights
from scae.errors import ScaeError
from scae.evaluation import evaluate_constellations, score_presences
from scae.evaluation.evaluate import LabelledPresences
from scae.evaluation.results import PROTOCOLS, ConstellationResult, ImageResult
from scae.figures import curves_figure, save
from scae.presets import preset
from scae.report import paper, write_report
from scae.report.caveats import last_symptoms
from scae.training.tables import StepTable
from training_runs import images_experiment, points_experiment

METRICS = {
    "step": [1.0, 50.0],
    "seconds": [0.5, 700.0],
    "loss": [9.0, 3.0],
    "skipped_steps": [0.0, 2.0],
    "rollbacks": [0.0, 0.0],
}
VOID = {"meta", "img", "link", "br", "hr", "input"}


class Page(HTMLParser):
    """Collects text, images and tags, and checks that every tag is closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(source)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "img":
            self.images.append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def image_result(dataset: str = "mnist") -> ImageResult:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    features = np.eye(3)[labels] + rng.normal(0, 0.05, (60, 3))
    both = LabelledPresences(features, features, labels)
    halves = LabelledPresences(features[:30], features[:30], labels[:30])
    scores = score_presences({"train-test": (halves, both), "full": (both, both)})
    return ImageResult(
        **vars(scores),
        dataset=dataset,
        n_train=30,
        n_test=60,
        baselines={"k-means on pixels": {"full": 0.5}},
        protocols=PROTOCOLS,
        seconds={},
    )


def scene_result() -> ConstellationResult:
    points = np.zeros((2, 4, 2), np.float32)
    labels = np.array([[0, 0, 1, 1], [0, 1, 1, 1]])

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))

        def segment(
            self, points: torch.Tensor, presence: torch.Tensor, views: int | None = None
        ) -> torch.Tensor:
            return torch.tensor([[0, 0, 1, 0], [0, 1, 1, 1]])

    return evaluate_constellations(Model(), points, np.ones((2, 4), np.float32), labels, capsules=2)


@pytest.fixture
def figure_paths(tmp_path: Path) -> list[Path]:
    figure = curves_figure({"step": [1, 2], "loss": [2.0, 1.0]})
    return save(figure, tmp_path / "figures", "curves")


def test_report_is_one_whole_file(tmp_path: Path, figure_paths: list[Path]) -> None:
    environment = {"started": "2020-01-01T00:00:00+00:00", "versions": {"torch": "2.8"},
                   "machine": {"cores": 2}, "commit": "abc123+", "resumed": []}  # fmt: skip
    (tmp_path / "environment.json").write_text(json.dumps(environment))
    experiment = preset("mnist")
    path = write_report(tmp_path, experiment, image_result(), figure_paths, METRICS)
    assert path == tmp_path / "report.html"
    source = path.read_text()
    page = Page(source)
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", source), "reaches outside the file"
    assert "url(" not in source and "@import" not in source and "<script" not in source
    (image,) = page.images  # the SVG is left out
    assert image["src"].startswith("data:image/png;base64,")
    assert "Training curves" in image["alt"] and len(image["alt"]) > 80
    assert "prefers-color-scheme: dark" in source and '<html lang="en">' in source
    targets = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert links and {link[1:] for link in links} <= targets
    for expected in ("torch", "2.8", "model.template_size", "12 min", "table 1, column MNIST"):
        assert expected in page.text
    stopped = f"stopped at step 50 of {experiment.training.steps:,}"
    for warning in (stopped, "2 steps were skipped", "uncommitted"):
        assert warning in page.text


def test_results_stand_beside_the_papers(tmp_path: Path) -> None:
    result = image_result()
    page = Page(write_report(tmp_path, preset("mnist"), result, []).read_text())
    ours = 100 * result.lin_match.prior["full"]
    assert f"{ours:.2f} 98.7 (0.35) {ours - 98.7:+.2f}".replace("-", "−") in page.text
    assert "table 1" in page.text
    again = write_report(tmp_path, preset("mnist"), json.loads(result.to_json()), [])
    assert Page(again.read_text()).text == page.text, "evaluation.json gives the same page"


def test_numbers_the_paper_does_not_have_stand_alone(tmp_path: Path) -> None:
    page = Page(write_report(tmp_path, preset("digits"), image_result("digits"), []).read_text())
    assert "table 1" not in page.text.partition("Configuration")[0].partition("Results")[2]


def test_constellations_stand_beside_section_3_1(tmp_path: Path) -> None:
    result = scene_result()
    assert result.segmentation_error == pytest.approx(1 / 8)
    experiment = preset("constellation")
    page = Page(write_report(tmp_path, experiment, result, []).read_text())
    assert (
        "12.50 2.8, best; consistently below 4 +9.70" in page.text
        and "Chance (no model)" in page.text
    )
    one_loss = replace(experiment, loss=LossWeights(two_parts=0.0))
    assert paper.segmentation_error(one_loss).value.mean == 10.0
    assert paper.segmentation_error(preset("constellation-baseline")).value.mean == 26.0


def test_ablations_stand_beside_their_own_row() -> None:
    full, linear = preset("mnist"), preset("mnist/linear-part-encoder")
    assert paper.lin_match(full, "mnist", "full").value.mean == 98.7  # table 1
    assert paper.lin_match(full, "mnist", "train-test").value.mean == 95.3  # table 2
    assert paper.lin_match(linear, "mnist", "train-test").value.mean == 98.0
    assert paper.lin_match(linear, "mnist", "full") is None
    assert paper.lin_match(full, "affnist", "train-target").value.mean == 92.2
    assert paper.lin_pred(full, "mnist", "train-test").value.mean == 99.0
    assert paper.lin_pred(linear, "mnist", "train-test") is None


def test_an_empty_run_folder_still_gives_a_page(tmp_path: Path) -> None:
    text = Page(write_report(tmp_path, points_experiment(), None, []).read_text()).text
    assert "has not been evaluated" in text and "No metrics were recorded" in text


def test_changed_fields_and_short_runs_are_marked(tmp_path: Path) -> None:
    experiment = preset("digits")
    short = replace(experiment, training=replace(experiment.training, steps=10))
    source = write_report(tmp_path, short, image_result("digits"), []).read_text()
    assert source.count('<tr class="changed">') == 1
    assert "A short run: 10 steps" in source


def test_text_is_escaped(tmp_path: Path) -> None:
    experiment = replace(images_experiment(), name="<script>alert(1)</script>", source='"&')
    source = write_report(tmp_path, experiment, None, []).read_text()
    assert "<script" not in source and "&lt;script&gt;" in source


def test_a_collapsed_run_says_so(tmp_path: Path) -> None:
    collapsed = Diagnosis(
        active_objects=1.0,
        dead_objects=11,
        object_entropy_within=0.0,
        object_entropy_between=0.0,
        unexplained=0.95,
        object_usage=[0.0] * 11 + [1.0],
    )
    StepTable(tmp_path / "diagnostics.csv").append({"step": 500, **collapsed.row()})
    assert {"collapse", "unexplained parts"} <= set(last_symptoms(tmp_path))
    text = Page(write_report(tmp_path, points_experiment(), None, []).read_text()).text
    assert "(collapse)" in text and "loss.posterior_between" in text


@pytest.mark.parametrize("content", ["", "step,unknown\n1,2\n", "not a table", "step\nx\n"])
def test_other_diagnostics_say_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "diagnostics.csv").write_text(content)
    assert last_symptoms(tmp_path) == {}


def test_a_damaged_picture_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"no image")
    with pytest.raises(ScaeError, match=r"x\.png"):
        write_report(tmp_path, points_experiment(), None, [tmp_path / "x.png"])
