"""LIN-MATCH and LIN-PRED on hand-made data whose scores are known."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scae.errors import ScaeError
from scae.evaluation import fit_kmeans, fit_probe, match_clusters, score_clusters
from scae.evaluation.clustering import lin_match

FEATURES = np.random.default_rng(0).random((20, 3), dtype=np.float32)


def test_hand_computed_matches() -> None:
    labels, pred = np.array([0, 0, 0, 1, 1, 2]), np.array([7, 7, 4, 4, 4, 9])
    assert match_clusters(pred, labels) == {7: 0, 4: 1, 9: 2}
    scores = score_clusters(pred, labels)
    assert scores.accuracy == pytest.approx(5 / 6)
    assert scores.confusion == [[2, 1, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0]]
    # More clusters than classes, and fewer.
    labels, pred = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 2, 2])
    assert match_clusters(pred, labels) == {0: 0, 2: 1}
    assert score_clusters(pred, labels).confusion == [[3, 0, 1], [0, 2, 0]]
    labels, pred = np.array([0, 0, 0, 1, 2, 2]), np.array([3, 3, 3, 3, 5, 5])
    assert match_clusters(pred, labels) == {3: 0, 5: 2}


@settings(max_examples=40, deadline=None)
@given(rng=st.integers(0, 2**32 - 1).map(np.random.default_rng))
def test_match_is_the_best_permutation_and_names_do_not_matter(rng: np.random.Generator) -> None:
    pred, labels = rng.integers(4, size=30), rng.integers(4, size=30)
    best = max(np.mean(np.array(names)[pred] == labels) for names in permutations(range(4)))
    renamed = score_clusters((rng.permutation(100)[:4] - 20)[pred], labels)
    assert renamed.accuracy == pytest.approx(best)


def test_names_come_from_the_fitted_set() -> None:
    """Other names for the same clusters in the scored set: all of them are wrong there."""
    labels = np.arange(20) % 2
    features = 0.05 * FEATURES + 5 * labels[:, None].astype(np.float32)
    assert lin_match((features, labels), (features, 1 - labels), 2).accuracy == 0
    assert lin_match((features, labels), (features, labels), 2).accuracy == 1
    centres = [fit_kmeans(FEATURES, 4, seed=3).cluster_centers_ for _ in range(2)]
    assert np.array_equal(*centres)


def test_probe_is_linear_with_a_weight_per_feature_and_class() -> None:
    rng = np.random.default_rng(0)
    features = (rng.random((600, 6)) * [1, 1, 1000, 1, 0, 1] + 3).astype(np.float32)
    labels = np.digitize(features[:, 0] + features[:, 2] / 1000, [3.8, 4.2]) + 4
    probe = fit_probe(features, labels)
    assert probe.score(features, labels) > 0.95
    assert probe[-1].coef_.shape == (3, 6)


def test_single_class_and_collapsed_features_warn() -> None:
    labels = np.full(20, 6)
    with pytest.warns(UserWarning, match="single class"):
        assert lin_match((FEATURES, labels), (FEATURES, labels), 1).accuracy == 1
    assert fit_probe(FEATURES, labels).score(FEATURES, labels) == 1
    same = np.ones((20, 3), np.float32), np.arange(20) % 4
    with pytest.warns(UserWarning, match="Number of distinct clusters"):
        assert lin_match(same, same, 4).accuracy == pytest.approx(1 / 4)


def test_bad_input_is_named() -> None:
    with pytest.raises(ScaeError, match="25 clusters were asked for with 20 examples"):
        fit_kmeans(FEATURES, 25)
    with pytest.raises(ScaeError, match="NaN"):
        fit_kmeans(FEATURES * np.nan, 2)


def test_bytes_are_pixels() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=80)
    images = (rng.random((80, 36)) * 40 + 150 * labels[:, None]).astype(np.uint8)
    assert lin_match((images[:60], labels[:60]), (images[60:], labels[60:]), 2).accuracy == 1
