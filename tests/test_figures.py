"""Figures: each runs for every family of models, shows what it says, and looks as it did."""

import dataclasses
import re
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from figure_cases import FAMILIES, Case, baseline_figures, make_case
from scae import figures
from scae.errors import ScaeError
from scae.figures import make, make_all, style
from scae.figures.curves import running_mean
from scae.figures.embedding import embed, strongest_objects
from scae.figures.looking import good_and_bad_scenes, one_per_class, scene_errors
from scae.figures.reconstructions import red_and_green
from scae.figures.sweeps import swept_votes
from scae.geometry import compose, similarity, transform_points

BASELINES = Path(__file__).parent / "baseline"
# Anti-aliasing of text and lines differs a little between versions of FreeType; a lost panel,
# colour or title moves the mean far more (see `test_comparison_notices_a_lost_panel`).
TOLERANCE = 6.0

EXPECTED = {
    "stacked": "reconstructions object-sweep templates part-poses tsne confusion usage curves",
    "sobel": "reconstructions edges object-sweep templates part-poses tsne confusion usage curves",
    "constellation": "constellations point-sweep usage curves",
    "baseline": "constellations usage curves",
}


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    return {family: make_case(family) for family in FAMILIES}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_figure_that_applies_is_drawn(
    family: str, cases: dict[str, Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = cases[family]
    settings = dict(mpl.rcParams)
    # Smaller than in earnest, which changes nothing but the time it takes.
    monkeypatch.setattr(make, "EXAMPLES", 2)
    monkeypatch.setattr(style, "DPI", 50)
    paths = make_all(
        case.model, case.experiment, tmp_path, data=case.data, metrics=case.metrics, limit=60
    )
    names = EXPECTED[family].split()
    assert [p.name for p in paths] == [f"{n}.{kind}" for n in names for kind in ("png", "svg")]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in paths)
    for path in paths:
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert image.info["Title"] and len(image.info["Description"]) > 60
                assert np.asarray(image.convert("L")).std() > 5, "an empty picture"
        else:
            text = path.read_text()
            assert text.rstrip().endswith("</svg>") and "<dc:title>" in text
            assert not re.search(r"https?://(?!www\.w3\.org|purl\.org|creativecommons)", text[600:])
    assert dict(mpl.rcParams) == settings, "matplotlib's settings were left changed"


def test_figures_of_unlabelled_images(cases: dict[str, Case], tmp_path: Path) -> None:
    case = cases["stacked"]
    data = replace(case.data, labels=None)
    material = make.Material(case.model, case.experiment, data, None, None, 60, 0)
    names = [name for name in make.FIGURES if make.unavailable(name, material) is None]
    assert names == ["reconstructions", "object-sweep", "templates", "part-poses", "tsne", "usage"]
    paths = make_all(case.model, case.experiment, tmp_path, data=data, names=["tsne"], limit=60)
    assert [path.name for path in paths] == ["tsne.png", "tsne.svg"]


def test_a_model_keeps_its_mode_and_the_random_state(
    cases: dict[str, Case], tmp_path: Path
) -> None:
    case = cases["stacked"]
    case.model.train()
    before = torch.get_rng_state()
    make_all(case.model, case.experiment, tmp_path, data=case.data, names=["templates", "usage"])
    assert case.model.training
    assert torch.equal(torch.get_rng_state(), before)
    case.model.eval()


def test_names_that_do_not_exist_or_apply_are_refused(
    cases: dict[str, Case], tmp_path: Path
) -> None:
    case = cases["constellation"]
    with pytest.raises(ScaeError, match="did you mean 'templates'"):
        make_all(case.model, case.experiment, tmp_path, data=case.data, names=["template"])
    with pytest.raises(ScaeError, match="this model takes point sets"):
        make_all(case.model, case.experiment, tmp_path, data=case.data, names=["templates"])
    with pytest.raises(ScaeError, match="no poses"):
        other = cases["baseline"]
        make_all(other.model, other.experiment, tmp_path, data=other.data, names=["point-sweep"])
    with pytest.raises(ScaeError, match="cannot be mixed"):
        make_all(case.model, case.experiment, tmp_path, data=cases["stacked"].data)
    assert list(tmp_path.iterdir()) == []


def test_saving_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        figure = figures.curves_figure({"step": [1, 2, 3], "loss": [3.0, 2.0, 1.0]})
        style.save(figure, tmp_path / folder, "curves")
    for name in ("curves.png", "curves.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_swept_votes_turn_the_object_as_one_rigid_body() -> None:
    generator = torch.Generator().manual_seed(1)
    object_pose = similarity(0.6, 20.0, (0.1, -0.2))
    relation = torch.randn(5, 2, 3, generator=generator)
    centre = torch.tensor([0.3, 0.4])
    still = compose(object_pose, relation)
    changes = (
        similarity(),
        similarity(degrees=90.0),
        similarity(2.0),
        similarity(shift=(0.5, 0.0)),
    )
    same, turned, scaled, shifted = swept_votes(object_pose, relation, changes, centre)
    torch.testing.assert_close(same, still)
    offset = still[..., 2] - centre  # a quarter turn towards positive y maps (x, y) to (-y, x)
    torch.testing.assert_close(
        turned[..., 2] - centre, torch.stack([-offset[:, 1], offset[:, 0]], -1)
    )
    torch.testing.assert_close(scaled[..., 2] - centre, 2 * offset)
    torch.testing.assert_close(shifted, still + torch.tensor([[0.0, 0.0, 0.5], [0.0, 0.0, 0.0]]))
    # Every point of a part's frame moves along, not only its middle.
    corners = torch.tensor([[-1.0, -1.0], [1.0, 0.5]])
    moved = transform_points(scaled, corners) - centre
    torch.testing.assert_close(moved, 2 * (transform_points(still, corners) - centre))


def test_red_and_green_overlap_in_yellow() -> None:
    parts, objects = np.zeros((1, 2, 2)), np.zeros((1, 2, 2))
    parts[0, 0, 0] = parts[0, 1, 1] = 1
    objects[0, 0, 1] = objects[0, 1, 1] = 1
    picture = red_and_green(parts, objects)
    assert picture[:, 0, 0].tolist() == [1, 0, 0]
    assert picture[:, 0, 1].tolist() == [0, 1, 0]
    assert picture[:, 1, 1].tolist() == [1, 1, 0]
    assert picture[:, 1, 0].tolist() == [0, 0, 0]


def test_wrong_points_are_those_evaluation_counts(cases: dict[str, Case]) -> None:
    found, case = cases["constellation"].data, cases["constellation"]
    seen = figures.segment_scenes(case.model, found.points, found.presence, found.pattern_id)
    errors = scene_errors(seen.segments, seen.labels, seen.present.astype(float))
    for scene in range(len(errors)):
        if seen.present[scene].any():
            share = seen.wrong(scene).sum() / seen.present[scene].sum()
            assert share == pytest.approx(errors[scene])
    good, bad = good_and_bad_scenes(errors, seen.present.astype(float), 3, 2)
    assert all(errors[good] == 0) and all(errors[bad] > 0)


def test_tsne_keeps_far_groups_apart_and_says_what_it_shows() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 40)
    presences = np.clip(np.eye(6)[labels] + rng.normal(0, 0.05, (120, 6)), 0, 1)
    full = embed(presences, jobs=1)
    assert full.note == "all 120 examples"
    middles = np.stack([full.points[labels == c].mean(0) for c in range(3)])
    nearest = ((full.points[:, None] - middles) ** 2).sum(-1).argmin(1)
    assert (nearest == labels).mean() > 0.95
    some = embed(presences, limit=50, jobs=1)
    assert some.note == "50 of 120 examples, drawn at random" and len(set(some.rows)) == 50


def test_tsne_of_a_collapsed_model_is_finite() -> None:
    assert np.isfinite(embed(np.full((40, 4), 0.5), jobs=1).points).all()
    with pytest.raises(ScaeError, match="at least 5"):
        embed(np.zeros((3, 4)))


def test_examples_without_labels_are_grouped_by_their_strongest_object() -> None:
    groups, names = strongest_objects(np.eye(4)[[3, 3, 1, 3, 0, 1]], most=2)
    assert groups.tolist() == [0, 0, 1, 0, 2, 1]
    assert names == ["object 3", "object 1", "others"]


def test_examples_show_every_class() -> None:
    labels = np.array([2, 2, 0, 1, 0, 2])
    assert one_per_class(labels, 6, 3) == [2, 3, 0]
    assert one_per_class(labels, 6, 5) == [2, 4, 3, 0, 1]
    assert one_per_class(None, 6, 4) == [0, 1, 2, 3]


def test_running_mean_skips_what_is_not_finite() -> None:
    values = np.array([1.0, 3.0, np.nan, 5.0, np.inf])
    np.testing.assert_allclose(running_mean(values, 2), [1, 2, 3, 5, 5])


def test_no_metrics_are_refused() -> None:
    with pytest.raises(ScaeError, match="no rows"):
        figures.curves_figure({})


def test_data_without_scenes_or_failures(cases: dict[str, Case]) -> None:
    """A perfect or unlabelled set still gives a figure."""
    case = cases["constellation"]
    found = case.data
    seen = figures.segment_scenes(case.model, found.points, found.presence)
    assert isinstance(figures.constellations_figure(seen, [0, 1], []), Figure)
    assert not dataclasses.replace(seen, labels=None).wrong(0).any()


def _pixels(figure: Figure, folder: Path) -> np.ndarray:
    return _read(style.save(figure, folder, "x")[0])


def _read(path: Path) -> np.ndarray:
    """Pixels at a quarter of the size, which keeps shapes and colours and forgives edges."""
    with Image.open(path) as image:
        small = image.convert("RGB")
        if small.width > 640:
            small = small.resize((640, round(640 * small.height / small.width)), Image.BOX)
        return np.asarray(small, np.float64)


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    """Root mean square of the difference of grey levels 0 to 255."""
    assert a.shape == b.shape, f"the figure has another size: {a.shape} and {b.shape}"
    return float(np.sqrt(np.mean((a - b) ** 2)))


@pytest.mark.parametrize("name", ["reconstructions", "templates", "object-sweep", "constellations",
                                  "confusion", "curves", "edges", "point-sweep"])  # fmt: skip
def test_figures_look_as_they_did(name: str, tmp_path: Path) -> None:
    """To renew after a deliberate change: `python tests/figure_cases.py`, then look at them."""
    found = _pixels(baseline_figures()[name](), tmp_path)
    assert _difference(found, _read(BASELINES / f"{name}.png")) < TOLERANCE


def test_comparison_notices_a_lost_panel(tmp_path: Path) -> None:
    figure = baseline_figures()["reconstructions"]()
    images = [axes for axes in figure.axes if axes.images]
    images[0].remove()
    found = _pixels(figure, tmp_path)
    assert _difference(found, _read(BASELINES / "reconstructions.png")) > TOLERANCE
