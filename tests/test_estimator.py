"""The estimators: parameters, layouts, repeatability, storage, pipelines, bad input."""

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import scae
from scae import CapsuleClusterer, ConstellationSegmenter
from scae.data import from_arrays
from scae.data.interface import ImageSource
from scae.errors import ScaeError
from scae.estimator.fitting import fit_in_memory
from small_estimators import EXPERIMENT, clusterer, segmenter
from training_runs import images_experiment, run, source_of

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (20, 14, 12), dtype=np.uint8)
COLOR = RNG.integers(0, 256, (12, 14, 12, 3), dtype=np.uint8)


def test_training_in_memory_gives_the_weights_of_a_run(tmp_path: Path) -> None:
    experiment = images_experiment(steps=6)
    optimizer = replace(experiment.optimizer, average=0.9, clip=1.0, schedule="cosine")
    experiment = replace(experiment, optimizer=optimizer)
    in_folder = run(experiment, tmp_path).model.state_dict()
    in_memory = fit_in_memory(experiment, source_of(experiment)).state_dict()
    assert all(torch.equal(in_folder[name], in_memory[name]) for name in in_folder)


def test_training_on_what_is_not_finite_is_given_up_in_one_sentence() -> None:
    optimizer = replace(EXPERIMENT.optimizer, lr=1e30)
    experiment = replace(EXPERIMENT, optimizer=optimizer)
    training = replace(experiment.training, steps=200, max_bad_steps=2, max_rollbacks=1)
    experiment = replace(experiment, training=training)
    source = ImageSource(from_arrays(IMAGES), 0)
    with pytest.raises(ScaeError, match=r"not finite.*Lower optimizer\.lr"):
        fit_in_memory(experiment, source)


def test_labels_predictions_and_presences_agree() -> None:
    fitted = clusterer().fit(IMAGES)
    assert fitted.labels_.shape == (20,) and set(fitted.labels_) <= {0, 1}
    assert np.array_equal(fitted.labels_, fitted.predict(IMAGES))
    assert np.array_equal(fitted.labels_, clusterer().fit_predict(IMAGES))
    presences = fitted.transform(IMAGES)
    assert presences.shape == (20, 4) and (presences >= 0).all() and (presences <= 1).all()
    assert np.allclose(presences, fitted.model_.presences(IMAGES).prior)
    order = np.random.default_rng(3).permutation(20)
    assert np.allclose(fitted.transform(IMAGES[order]), presences[order], atol=1e-6)
    assert np.allclose(fitted.transform(IMAGES[:1]), presences[:1], atol=1e-6)
    distances = ((presences[:, None] - fitted.cluster_centers_) ** 2).sum(-1)
    assert np.array_equal(distances.argmin(1), fitted.labels_)
    assert list(fitted.get_feature_names_out()) == [f"capsuleclusterer{k}" for k in range(4)]
    assert fitted.score(IMAGES) == pytest.approx(float(fitted.model_.log_likelihood(IMAGES).mean()))


def test_clusters_are_the_classes_of_the_sparsity_targets() -> None:
    fitted = clusterer(n_clusters=3, n_objects=6, n_parts=7, steps=2, batch_size=5).fit(IMAGES)
    model = fitted.experiment_.model
    assert (model.classes, model.objects, model.parts) == (3, 6, 7)
    assert (fitted.n_iter_, fitted.experiment_.training.batch) == (2, 5)
    assert fitted.cluster_centers_.shape == (3, 6)
    assert clusterer(n_clusters=None).fit(IMAGES).n_clusters_ == 10
    assert clusterer(n_clusters=None).fit(IMAGES[:6]).n_clusters_ == 3


def test_defaults_come_from_the_number_and_size_of_the_images() -> None:
    chosen = CapsuleClusterer(5)._configure(from_arrays(np.zeros((300, 28, 28), np.uint8)), 7)
    assert chosen.model.image_size == (28, 28) and chosen.model.objects == 12
    assert (chosen.training.steps, chosen.training.batch, chosen.training.seed) == (4000, 32, 7)


def test_layouts_of_the_same_images_are_the_same() -> None:
    fitted = clusterer().fit(IMAGES)
    expected = fitted.transform(IMAGES)
    flat = IMAGES.reshape(20, -1)
    for same in (IMAGES[..., None], IMAGES[:, None], IMAGES / 255, flat, IMAGES.tolist()):
        assert np.array_equal(fitted.transform(same), expected)
    again = clusterer(image_shape=(14, 12)).fit(flat)
    assert np.array_equal(again.transform(flat), expected)
    color = clusterer().fit(COLOR)
    first = COLOR.transpose(0, 3, 1, 2)
    assert np.array_equal(color.transform(first), color.transform(COLOR))
    by_rows = clusterer(image_shape=(14, 12, 3)).fit(COLOR.reshape(12, -1))
    assert np.array_equal(by_rows.transform(COLOR.reshape(12, -1)), color.transform(COLOR))


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (IMAGES.reshape(20, -1), "give image_shape"),
        (np.zeros((20, 14, 12, 7)), "1 or 3 channels"),
        (IMAGES.astype(float), "floats from 0 to 1"),
        (-IMAGES.astype(float), "Negative values"),
        (np.full((20, 14, 12), np.nan), "NaN"),
        (IMAGES[:1], "minimum of 2"),
        (IMAGES[:, :4, :4], "too small"),
    ],
)
def test_bad_images_are_value_errors(X: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        CapsuleClusterer(n_clusters=2, steps=1).fit(X)


def test_other_sizes_than_in_fit_are_refused() -> None:
    fitted = clusterer().fit(IMAGES)
    with pytest.raises(ValueError, match=r"12x14 images .* fitted on 14x12"):
        fitted.predict(IMAGES.transpose(0, 2, 1))
    with pytest.raises(ValueError, match="features"):
        fitted.predict(IMAGES[:, :13])
    with pytest.raises(ValueError, match="at least as many images"):
        clusterer(n_clusters=21).fit(IMAGES)


def test_warm_start_continues_and_cold_start_repeats() -> None:
    model = clusterer().fit(IMAGES)
    first = model.transform(IMAGES)
    assert np.array_equal(model.fit(IMAGES).transform(IMAGES), first)
    model.set_params(warm_start=True).fit(IMAGES)
    assert model.n_iter_ == 6 and not np.array_equal(model.transform(IMAGES), first)
    with pytest.raises(ValueError, match="warm_start needs"):
        model.set_params(n_objects=9).fit(IMAGES)
    assert not np.array_equal(clusterer(random_state=1).fit(IMAGES).transform(IMAGES), first)


def test_saved_estimators_predict_the_same(tmp_path: Path) -> None:
    fitted = clusterer().fit(IMAGES)
    fitted.save(tmp_path / "model")
    assert {p.suffix for p in (tmp_path / "model").iterdir()} == {".safetensors", ".json"}
    again = CapsuleClusterer.load(tmp_path / "model")
    assert np.array_equal(again.predict(IMAGES), fitted.labels_)
    assert again.get_params() == fitted.get_params() | {"experiment": fitted.experiment_}
    assert np.array_equal(again.cluster_centers_, fitted.cluster_centers_)
    with pytest.raises(ValueError, match="features"):
        again.predict(IMAGES[:, :13])
    alone = scae.load(tmp_path / "model")
    assert np.array_equal(alone.presences(IMAGES).prior, fitted.transform(IMAGES))
    copied = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copied.predict(IMAGES), fitted.labels_)


@pytest.mark.parametrize("text", ["", "[]", '{"estimator": "CapsuleClusterer"}', '{"a": 1}'])
def test_damaged_records_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "estimator.json").write_text(text)
    with pytest.raises(ScaeError, match=r"estimator\.json"):
        CapsuleClusterer.load(tmp_path)
    with pytest.raises(ScaeError, match="cannot be read"):
        CapsuleClusterer.load(tmp_path / "nowhere")
    record = {"estimator": "ConstellationSegmenter", "parameters": {}, "learned": {}}
    (tmp_path / "estimator.json").write_text(json.dumps(record))
    with pytest.raises(ScaeError, match="written by ConstellationSegmenter"):
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
    assert fitted.transform(X).shape == (12, 3)
    assert fitted.get_feature_names_out()[0] == "constellationsegmenter0"
    assert np.isfinite(fitted.score(X))
    assert (fitted.predict(X, mark_dummy=True) <= fitted.labels_).all()
    fitted.save(tmp_path)
    again = ConstellationSegmenter.load(tmp_path)
    assert np.array_equal(again.predict(X), fitted.labels_)
    assert again.fit(X).n_iter_ == 4
    search = GridSearchCV(segmenter(steps=1), {"n_clusters": [2, 4]}, cv=2, error_score="raise")
    assert search.fit(X).best_estimator_.model_.model.config.objects in (2, 4)


def test_points_that_are_not_normalised_are_seen_as_they_are(tmp_path: Path) -> None:
    X = (scenes() - 90) / 500  # within a fifth of the square
    fitted = segmenter(normalise=None).fit(X)
    there = torch.from_numpy(~np.isnan(X[..., 0])).float()
    points = torch.from_numpy(np.nan_to_num(X)).float()
    likelihood = fitted.model_.model.log_likelihood(points, there).mean().item()
    assert fitted.score(X) == pytest.approx(likelihood, rel=1e-5)
    fitted.save(tmp_path)
    assert ConstellationSegmenter.load(tmp_path).score(X) == pytest.approx(likelihood, rel=1e-5)


def test_warm_start_and_defaults_of_the_segmenter() -> None:
    X = scenes()
    model = segmenter(warm_start=True).fit(X).fit(X)
    assert model.n_iter_ == 8
    with pytest.raises(ValueError, match="warm_start needs"):
        model.set_params(n_points=9).fit(X)
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
    with pytest.raises(ValueError, match="normalise"):
        segmenter(normalise="global").fit(scenes())
