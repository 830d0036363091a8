"""The estimators: scikit-learn's checks, layouts, repeatability, storage, bad input."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pandas
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import scae
from scae import CapsuleClusterer, ConstellationSegmenter
from scae.prediction import predict
from small_models import IMAGE_EXPERIMENT, POINT_EXPERIMENT

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (20, 14, 12), dtype=np.uint8)
COLOR = RNG.integers(0, 256, (12, 14, 12, 3), dtype=np.uint8)
SCENES = 100 * RNG.random((12, 8, 2)) + 40  # far from [-1, 1]
SCENES[::2, -2:] = np.nan


def clusterer(**parameters: Any) -> CapsuleClusterer:
    defaults = {"n_clusters": 2, "experiment": IMAGE_EXPERIMENT, "random_state": 0}
    return CapsuleClusterer(**(defaults | {"device": "cpu"} | parameters))


def segmenter(**parameters: Any) -> ConstellationSegmenter:
    defaults = {"experiment": POINT_EXPERIMENT, "random_state": 0, "device": "cpu"}
    return ConstellationSegmenter(**(defaults | parameters))


@pytest.fixture
def unchecked_types() -> Iterator[None]:
    """One check sets nonsense, which our tests' type checks would refuse before it is stored."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


SKLEARN = parametrize_with_checks([clusterer(steps=1), segmenter(steps=1)]).mark
# Checks of the array API skip themselves where SciPy's is not switched on.
CHECKS = [(e, check) for e, check in SKLEARN.args[1] if "array_api" not in str(check)]


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.filterwarnings("ignore:X has .* features, ")
@pytest.mark.parametrize(("estimator", "check"), CHECKS, ids=SKLEARN.kwargs["ids"])
def test_scikit_learns_checks(estimator: Any, check: Any, unchecked_types: None) -> None:
    check(estimator)


def test_labels_predictions_and_presences_agree() -> None:
    fitted = clusterer().fit(IMAGES)
    assert np.array_equal(fitted.labels_, fitted.predict(IMAGES))
    presences = fitted.transform(IMAGES)
    assert np.allclose(presences, fitted.model_.presences(IMAGES).prior, atol=1e-5)
    distances = ((presences[:, None] - fitted.cluster_centers_) ** 2).sum(-1)
    assert np.array_equal(distances.argmin(1), fitted.labels_)
    assert fitted.score(IMAGES) == pytest.approx(float(fitted.model_.log_likelihood(IMAGES).mean()))
    assert np.array_equal(clusterer().fit(IMAGES).transform(IMAGES), presences)


def test_clusters_are_the_classes_of_the_sparsity_targets() -> None:
    fitted = clusterer(n_clusters=3, n_objects=6, n_parts=7, steps=2).fit(IMAGES)
    model = fitted.experiment_.model
    assert (model.classes, model.objects, model.parts) == (3, 6, 7)
    assert fitted.n_iter_ == 2
    assert fitted.cluster_centers_.shape == (3, 6)


def test_layouts_of_the_same_images_are_the_same(tmp_path: Path) -> None:
    fitted = clusterer().fit(IMAGES)
    expected = fitted.transform(IMAGES)
    paths = [tmp_path / f"{i}.png" for i in range(20)]
    for path, image in zip(paths, IMAGES, strict=True):
        Image.fromarray(image).save(path)
    files = [paths, pandas.Series([str(path) for path in paths])]
    for same in (IMAGES[..., None], IMAGES[:, None], IMAGES / 255, IMAGES.tolist(), *files):
        assert np.array_equal(fitted.transform(same), expected)
    flat = IMAGES.reshape(20, -1)
    for rows in (flat, pandas.DataFrame(flat).rename(columns=str)):
        again = clusterer(image_shape=(14, 12)).fit(rows)
        assert np.array_equal(again.transform(rows), expected)
    color = clusterer().fit(COLOR)
    assert np.array_equal(color.transform(COLOR.transpose(0, 3, 1, 2)), color.transform(COLOR))


def test_other_ranges_are_black_to_white_and_squares_are_found() -> None:
    digits = RNG.integers(0, 17, (20, 64)).astype(float)  # as scikit-learn's digits
    fitted = clusterer().fit(digits)
    assert fitted.image_shape_ == (1, 8, 8) and fitted.pixel_range_ == (0, 16)
    scaled = clusterer().fit(digits / 16).transform(digits / 16)
    assert np.allclose(fitted.transform(digits), scaled)
    with pytest.warns(UserWarning, match="no square image"):
        assert clusterer().fit(digits[:, :40]).image_shape_ == (1, 8, 8)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.zeros((20, 14, 12, 7)), "1 or 3 channels"),
        (np.full((20, 14, 12), np.nan), "NaN"),
        (IMAGES[:, :4, :4], "too small"),
        (IMAGES[:3], "more clusters"),
        (["nowhere.png"], r"nowhere\.png cannot be read"),
    ],
)
def test_bad_images_are_value_errors(X: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        CapsuleClusterer(n_clusters=4, steps=1).fit(X)


def test_saved_pickled_and_used_by_the_package(tmp_path: Path) -> None:
    fitted = clusterer().fit(IMAGES)
    fitted.save(tmp_path / "model")
    found = predict(scae.load(tmp_path / "model"), IMAGES)
    assert [row[1] for row in found.rows] == fitted.labels_.tolist() and not found.note
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(IMAGES), fitted.labels_)
    points = segmenter().fit(SCENES)
    points.save(tmp_path)
    assert scae.load(tmp_path).experiment == points.experiment_
    assert np.array_equal(pickle.loads(pickle.dumps(points)).predict(SCENES), points.labels_)


def test_pipelines_and_searches() -> None:
    flat = IMAGES.reshape(20, -1).astype(float)
    steps = make_pipeline(MinMaxScaler(clip=True), clusterer(image_shape=(14, 12)))
    assert steps.fit_predict(flat).shape == (20,)
    search = GridSearchCV(clusterer(steps=2), {"n_objects": [3, 5]}, cv=2, error_score="raise")
    assert np.isfinite(search.fit(IMAGES).cv_results_["mean_test_score"]).all()
    assert clone(steps).get_params()["capsuleclusterer__n_clusters"] == 2
    search = GridSearchCV(segmenter(steps=1), {"n_clusters": [2, 4]}, cv=2, error_score="raise")
    assert search.fit(SCENES).best_estimator_.model_.model.config.objects in (2, 4)
    rows = SCENES.reshape(12, 16)
    assert make_pipeline(MinMaxScaler(), segmenter(steps=1)).fit_predict(rows).shape == (12, 8)


def test_layouts_of_the_same_points_are_the_same(tmp_path: Path) -> None:
    fitted = segmenter().fit(SCENES)
    assert np.array_equal(fitted.labels_ == -1, np.isnan(SCENES[..., 0]))
    ragged = [scene[~np.isnan(scene[:, 0])] for scene in SCENES]
    lines = [(s, x, y) for s, scene in enumerate(ragged) for x, y in scene]
    frame = pandas.DataFrame(lines, columns=["scene", "x", "y"])
    frame.to_csv(tmp_path / "points.csv", index=False)
    for same in (SCENES, ragged, frame, tmp_path / "points.csv"):
        assert np.array_equal(fitted.predict(same), fitted.labels_)
    rows = SCENES.reshape(12, 16)
    assert np.array_equal(segmenter().fit_predict(rows), fitted.labels_)
    assert np.allclose(fitted.score(SCENES), segmenter().fit(rows).score(rows))
    with pytest.warns(UserWarning, match="odd number"):
        assert fitted.predict(np.ones((2, 5))).shape == (2, 3)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.zeros((3, 4, 3)), r"expected \(scenes, points, 2\)"),
        (np.full((3, 4, 2), np.inf), "NaN or infinity"),
        ([np.zeros((3, 3))], r"expected \(points, 2\)"),
        (np.zeros((0, 4, 2)), "at least one scene"),
        (np.array([[1.0, np.inf]]), "infinity"),
    ],
)
def test_bad_points_are_value_errors(X: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        segmenter().fit(X)
