"""LIN-MATCH and LIN-PRED on hand-made data whose scores are known."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scae.errors import ScaeError
from scae.evaluation import (
    fit_kmeans,
    fit_probe,
    match_clusters,
    score_clusters,
)
from scae.evaluation.clustering import lin_match, pixel_kmeans

RNGS = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def blobs(count: int, seed: int, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(centres), size=count)
    noise = 0.05 * rng.normal(size=(count, centres.shape[1]))
    return (centres[labels] + noise).astype(np.float32), labels


def test_hand_computed_match() -> None:
    labels = np.array([0, 0, 0, 1, 1, 2])
    pred = np.array([7, 7, 4, 4, 4, 9])
    assert match_clusters(pred, labels) == {7: 0, 4: 1, 9: 2}
    scores = score_clusters(pred, labels)
    assert scores.accuracy == pytest.approx(5 / 6)
    assert scores.confusion == [[2, 1, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0]]


def test_numbers_of_clusters_and_classes_may_differ() -> None:
    labels = np.array([0, 0, 0, 0, 1, 1])
    pred = np.array([0, 0, 0, 1, 2, 2])
    assert match_clusters(pred, labels) == {0: 0, 2: 1}
    scores = score_clusters(pred, labels)
    assert scores.accuracy == pytest.approx(5 / 6)
    assert scores.confusion == [[3, 0, 1], [0, 2, 0]]
    labels = np.array([0, 0, 0, 1, 2, 2])
    assert match_clusters(np.array([3, 3, 3, 3, 5, 5]), labels) == {3: 0, 5: 2}


def test_mapping_of_other_data_is_kept() -> None:
    labels = np.array([0, 0, 1, 1])
    scores = score_clusters(np.array([1, 1, 0, 0]), labels, {0: 0, 1: 1})
    assert scores.accuracy == 0
    assert scores.nmi == pytest.approx(1)
    assert scores.ari == pytest.approx(1)
    unseen = score_clusters(np.array([0, 0, 5, 5]), labels, {0: 0, 1: 3})
    assert unseen.accuracy == 0.5
    assert unseen.confusion == [[2, 0, 0, 0], [0, 0, 0, 2], [0, 0, 0, 0]]


@settings(max_examples=40, deadline=None)
@given(rng=RNGS)
def test_match_is_the_best_permutation_and_names_do_not_matter(rng: np.random.Generator) -> None:
    pred, labels = rng.integers(4, size=30), rng.integers(4, size=30)
    best = max(np.mean(np.array(names)[pred] == labels) for names in permutations(range(4)))
    scores = score_clusters(pred, labels)
    assert scores.accuracy == pytest.approx(best)
    renamed = score_clusters((rng.permutation(100)[:4] - 20)[pred], labels)
    assert renamed.accuracy == pytest.approx(scores.accuracy)
    assert renamed.nmi == pytest.approx(scores.nmi)


def test_names_come_from_the_fitted_set() -> None:
    """Test images are mirrored: names learnt on train are all wrong there."""
    centres = np.array([[0.0, 0.0], [5.0, 0.0]])
    train = blobs(90, 0, centres)
    features, labels = blobs(30, 1, centres)
    assert lin_match(train, (features, 1 - labels)).accuracy == 0
    assert lin_match(train, train).accuracy == 1


def test_kmeans_is_deterministic() -> None:
    features = np.random.default_rng(0).random((300, 5), dtype=np.float32)
    centres = [fit_kmeans(features, 4, seed=3).cluster_centers_ for _ in range(2)]
    assert np.array_equal(*centres)


def test_probe_is_linear_with_a_weight_per_feature_and_class() -> None:
    rng = np.random.default_rng(0)
    features = (rng.random((600, 6)) * [1, 1, 1000, 1, 0, 1] + 3).astype(np.float32)
    labels = np.digitize(features[:, 0] + features[:, 2] / 1000, [3.8, 4.2]) + 4
    probe = fit_probe(features, labels)
    assert probe.score(features, labels) > 0.95
    assert probe[-1].coef_.shape == (3, 6)


def test_single_class_and_collapsed_features_warn() -> None:
    features = np.random.default_rng(0).random((20, 3), dtype=np.float32)
    labels = np.full(20, 6)
    with pytest.warns(UserWarning, match="single class"):
        assert lin_match((features, labels), (features, labels)).accuracy == 1
    with pytest.warns(UserWarning, match="single class"):
        assert fit_probe(features, labels).score(features, labels) == 1
    same = np.ones((20, 3), np.float32), np.arange(20) % 4
    with pytest.warns(UserWarning, match="collapsed"):
        assert lin_match(same, same).accuracy == pytest.approx(1 / 4)


def test_bad_input_is_named() -> None:
    features = np.ones((3, 2), np.float32)
    with pytest.raises(ScaeError, match="5 clusters were asked for with 3 examples"):
        fit_kmeans(features, 5)
    with pytest.raises(ScaeError, match="NaN"):
        fit_kmeans(features * np.nan, 2)
    with pytest.raises(ScaeError, match="no examples"):
        score_clusters(np.zeros(0, int), np.zeros(0, int))


def test_pixel_baseline_finds_bright_and_dark_images() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=80)
    images = (rng.random((80, 36)) * 40 + 150 * labels[:, None]).astype(np.uint8)
    train, test = (images[:60], labels[:60]), (images[60:], labels[60:])
    assert pixel_kmeans(train, test, 2) == 1
    assert pixel_kmeans(train, train, 2) == 1
