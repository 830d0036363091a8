"""The estimators: scikit-learn's checks, layouts, repeatability, storage, bad input."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import scae
from scae import CapsuleClusterer, ConstellationSegmenter
from scae.data import from_arrays
from scae.errors import ScaeError
from scae.prediction import predict
from small_models import IMAGE_EXPERIMENT, POINT_EXPERIMENT

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (20, 14, 12), dtype=np.uint8)
COLOR = RNG.integers(0, 256, (12, 14, 12, 3), dtype=np.uint8)


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


SKLEARN = parametrize_with_checks([clusterer(steps=1)]).mark
# Checks of the array API skip themselves where SciPy's is not switched on.
CHECKS = [(e, check) for e, check in SKLEARN.args[1] if "array_api" not in str(check)]


@pytest.mark.filterwarnings("ignore:The examples hold fewer")
@pytest.mark.filterwarnings("ignore:X has .* features, which are no square")
@pytest.mark.parametrize(("estimator", "check"), CHECKS, ids=SKLEARN.kwargs["ids"])
def test_scikit_learns_checks(estimator: Any, check: Any, unchecked_types: None) -> None:
    check(estimator)


def test_labels_predictions_and_presences_agree() -> None:
    fitted = clusterer().fit(IMAGES)
    assert fitted.labels_.shape == (20,) and set(fitted.labels_) <= {0, 1}
    assert np.array_equal(fitted.labels_, fitted.predict(IMAGES))
    presences = fitted.transform(IMAGES)
    assert presences.shape == (20, 4) and (presences >= 0).all() and (presences <= 1).all()
    assert np.allclose(presences, fitted.model_.presences(IMAGES).prior, atol=1e-5)
    distances = ((presences[:, None] - fitted.cluster_centers_) ** 2).sum(-1)
    assert np.array_equal(distances.argmin(1), fitted.labels_)
    assert list(fitted.get_feature_names_out()) == [f"capsuleclusterer{k}" for k in range(4)]
    assert fitted.score(IMAGES) == pytest.approx(float(fitted.model_.log_likelihood(IMAGES).mean()))
    with pytest.raises(ValueError, match=r"1 channels of 14x12 pixels"):
        fitted.predict(IMAGES.transpose(0, 2, 1))
    with pytest.raises(ValueError, match="features"):
        fitted.predict(IMAGES[:, :13])
    with pytest.raises(ValueError, match="at least as many images"):
        clusterer(n_clusters=21).fit(IMAGES)


def test_clusters_are_the_classes_of_the_sparsity_targets() -> None:
    fitted = clusterer(n_clusters=3, n_objects=6, n_parts=7, steps=2, batch_size=5).fit(IMAGES)
    model = fitted.experiment_.model
    assert (model.classes, model.objects, model.parts) == (3, 6, 7)
    assert (fitted.n_iter_, fitted.experiment_.training.batch) == (2, 5)
    assert fitted.cluster_centers_.shape == (3, 6)
    assert clusterer(n_clusters=None).fit(IMAGES[:6]).n_clusters_ == 3
    chosen = CapsuleClusterer(5)._configure(from_arrays(np.zeros((300, 28, 28), np.uint8)), 7)
    assert chosen.model.image_size == (28, 28) and chosen.model.objects == 12
    assert chosen.training.seed == 7


def test_layouts_of_the_same_images_are_the_same() -> None:
    fitted = clusterer().fit(IMAGES)
    expected = fitted.transform(IMAGES)
    for same in (IMAGES[..., None], IMAGES[:, None], IMAGES / 255, IMAGES.tolist()):
        assert np.array_equal(fitted.transform(same), expected)
    flat = IMAGES.reshape(20, -1)
    again = clusterer(image_shape=(14, 12)).fit(flat)
    assert np.array_equal(again.transform(flat), expected)
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


def test_files_and_data_frames(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{i}.png") for i in range(20)]
    for path, image in zip(paths, IMAGES, strict=True):
        Image.fromarray(image).save(path)
    fitted = clusterer().fit(paths)
    assert np.array_equal(fitted.predict(IMAGES), fitted.labels_)
    assert fitted.predict([Path(paths[3])]) == fitted.labels_[3]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(IMAGES.reshape(20, -1)).rename(columns=str)
    again = clusterer(image_shape=(14, 12)).fit(frame)
    assert np.array_equal(again.predict(frame), fitted.labels_)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.zeros((20, 14, 12, 7)), "1 or 3 channels"),
        (np.full((20, 14, 12), np.nan), "NaN"),
        (IMAGES[:1], "minimum of 2"),
        (IMAGES[:, :4, :4], "too small"),
        (["nowhere.png"], r"nowhere\.png cannot be read"),
    ],
)
def test_bad_images_are_value_errors(X: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        CapsuleClusterer(n_clusters=2, steps=1).fit(X)


def test_warm_start_continues_and_cold_start_repeats() -> None:
    model = clusterer().fit(IMAGES)
    first = model.transform(IMAGES)
    assert np.array_equal(model.fit(IMAGES).transform(IMAGES), first)
    model.set_params(warm_start=True).fit(IMAGES)
    assert model.n_iter_ == 6 and not np.array_equal(model.transform(IMAGES), first)
    with pytest.raises(ValueError, match="warm_start needs"):
        model.set_params(n_objects=7).fit(IMAGES)


def test_saved_pickled_and_used_by_the_package(tmp_path: Path) -> None:
    fitted = clusterer().fit(IMAGES)
    fitted.save(tmp_path / "model")
    again = CapsuleClusterer.load(tmp_path / "model")
    assert np.array_equal(again.predict(IMAGES), fitted.labels_)
    assert again.set_params(experiment=None).get_params() == clusterer(experiment=None).get_params()
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(IMAGES), fitted.labels_)
    found = predict(scae.api.load_model(tmp_path / "model"), IMAGES)
    assert [row[1] for row in found.rows] == fitted.labels_.tolist() and not found.note


def test_damaged_records_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScaeError, match="cannot be read"):
        CapsuleClusterer.load(tmp_path)
    for text in ("", "[]", '{"estimator": "CapsuleClusterer"}', '{"estimator": "Other"}'):
        (tmp_path / "estimator.json").write_text(text)
        with pytest.raises(ScaeError, match=r"estimator\.json (is not|was written by)"):
            CapsuleClusterer.load(tmp_path)


def test_pipelines_and_searches() -> None:
    flat = IMAGES.reshape(20, -1).astype(float)
    steps = make_pipeline(MinMaxScaler(clip=True), clusterer(image_shape=(14, 12)))
    assert steps.fit_predict(flat).shape == (20,)
    search = GridSearchCV(clusterer(steps=2), {"n_objects": [3, 5]}, cv=2, error_score="raise")
    search.fit(IMAGES)
    assert search.best_params_["n_objects"] in (3, 5)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert clone(steps).get_params()["capsuleclusterer__n_clusters"] == 2


def scenes(count: int = 12, points: int = 8) -> np.ndarray:
    """Scenes of points far from [-1, 1]; some are absent."""
    X = 100 * np.random.default_rng(1).random((count, points, 2)) + 40
    X[::2, -2:] = np.nan
    return X


def test_segments_of_points_absent_ones_left_out(tmp_path: Path) -> None:
    X = scenes()
    fitted = segmenter().fit(X)
    assert np.array_equal(fitted.labels_ == -1, np.isnan(X[..., 0]))
    assert np.array_equal(fitted.predict(X), fitted.labels_)
    assert np.array_equal(segmenter().fit_predict(X), fitted.labels_)
    ragged = [scene[~np.isnan(scene[:, 0])] for scene in X]
    assert np.array_equal(fitted.predict(ragged), fitted.labels_)
    lines = [f"{s},{x},{y}" for s, scene in enumerate(ragged) for x, y in scene]
    (tmp_path / "points.csv").write_text("\n".join(["scene,x,y", *lines]))
    assert np.array_equal(fitted.predict(tmp_path / "points.csv"), fitted.labels_)
    assert fitted.transform(X).shape == (12, 3)
    assert fitted.get_feature_names_out()[0] == "constellationsegmenter0"
    assert np.isfinite(fitted.score(X))
    assert (fitted.predict(X, mark_dummy=True) <= fitted.labels_).all()
    fitted.save(tmp_path)
    again = ConstellationSegmenter.load(tmp_path)
    assert np.array_equal(again.predict(X), fitted.labels_)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.labels_)
    search = GridSearchCV(segmenter(steps=1), {"n_clusters": [2, 4]}, cv=2, error_score="raise")
    assert search.fit(X).best_estimator_.model_.model.config.objects in (2, 4)


def test_warm_start_normalisation_and_defaults_of_the_segmenter() -> None:
    X = scenes()
    model = segmenter(warm_start=True).fit(X).fit(X)
    assert model.n_iter_ == 6
    with pytest.raises(ValueError, match="warm_start needs"):
        model.set_params(n_points=9).fit(X)
    assert not segmenter(normalise=False).fit(X).model_.model.config.normalise
    chosen = ConstellationSegmenter(4)._configure(1000, 0)
    assert (chosen.model.objects, chosen.model.votes, chosen.training.steps) == (4, 4, 5000)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.zeros((3, 4)), r"\(scenes, points, 2\)"),
        (np.full((3, 4, 2), np.nan), "without any points"),
        (np.full((3, 4, 2), np.inf), "NaN or infinity"),
        ([np.zeros((3, 3))], r"expected \(points, 2\)"),
        (np.zeros((0, 4, 2)), "empty"),
        ([], "empty"),
    ],
)
def test_bad_points_are_value_errors(X: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        segmenter().fit(X)
