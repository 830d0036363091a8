"""LIN-MATCH and LIN-PRED on hand-made data whose scores are known."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scae.errors import ScaeError
from scae.evaluation import fit_probe, lin_match, match_clusters, score_clusters
from scae.evaluation.baselines import pixel_baselines
from scae.evaluation.clustering import fit_kmeans

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


def test_more_clusters_than_classes_leaves_the_rest_wrong() -> None:
    labels = np.array([0, 0, 0, 0, 1, 1])
    pred = np.array([0, 0, 0, 1, 2, 2])
    assert match_clusters(pred, labels) == {0: 0, 2: 1}
    scores = score_clusters(pred, labels)
    assert scores.accuracy == pytest.approx(5 / 6)
    assert scores.confusion == [[3, 0, 1], [0, 2, 0]]


def test_fewer_clusters_than_classes() -> None:
    labels = np.array([0, 0, 0, 1, 2, 2])
    assert match_clusters(np.array([3, 3, 3, 3, 5, 5]), labels) == {3: 0, 5: 2}
    assert score_clusters(np.array([3, 3, 3, 3, 5, 5]), labels).accuracy == pytest.approx(5 / 6)


def test_mapping_of_other_data_is_kept() -> None:
    labels = np.array([0, 0, 1, 1])
    scores = score_clusters(np.array([1, 1, 0, 0]), labels, {0: 0, 1: 1})
    assert scores.accuracy == 0
    assert scores.nmi == pytest.approx(1)
    assert scores.ari == pytest.approx(1)
    unseen = score_clusters(np.array([0, 0, 5, 5]), labels, {0: 0, 1: 3})
    assert unseen.accuracy == 0.5
    assert unseen.confusion == [[2, 0, 0, 0], [0, 0, 0, 2], [0, 0, 0, 0]]


@settings(max_examples=60, deadline=None)
@given(rng=RNGS)
def test_match_is_the_best_permutation(rng: np.random.Generator) -> None:
    pred, labels = rng.integers(4, size=30), rng.integers(4, size=30)
    best = max(np.mean(np.array(names)[pred] == labels) for names in permutations(range(4)))
    assert score_clusters(pred, labels).accuracy == pytest.approx(best)


@settings(max_examples=60, deadline=None)
@given(rng=RNGS)
def test_scores_do_not_depend_on_cluster_numbers(rng: np.random.Generator) -> None:
    pred, labels = rng.integers(5, size=40), rng.integers(3, size=40)
    names = rng.permutation(100)[:5] - 20
    original, renamed = score_clusters(pred, labels), score_clusters(names[pred], labels)
    assert renamed.accuracy == pytest.approx(original.accuracy)
    assert renamed.nmi == pytest.approx(original.nmi)
    assert renamed.ari == pytest.approx(original.ari)


def test_protocols_differ_where_they_should() -> None:
    """Test images are mirrored: names learnt on train are all wrong there."""
    centres = np.array([[0.0, 0.0], [5.0, 0.0]])
    train = blobs(90, 0, centres)
    features, labels = blobs(30, 1, centres)
    test = (features, 1 - labels)
    assert lin_match("train-test", train, test).accuracy == 0
    assert lin_match("full", train, test).accuracy == pytest.approx(90 / 120)
    assert lin_match("full", train, None).accuracy == 1
    with pytest.raises(ScaeError, match="train-test protocol needs test images"):
        lin_match("train-test", train, None)


def test_kmeans_is_deterministic() -> None:
    features = np.random.default_rng(0).random((300, 5), dtype=np.float32)
    centres = [fit_kmeans(features, 4, seed=3).cluster_centers_ for _ in range(2)]
    assert np.array_equal(*centres)


def test_probe_separates_and_counts_its_parameters() -> None:
    rng = np.random.default_rng(0)
    features = (rng.random((600, 6)) * [1, 1, 1000, 1, 0, 1] + 3).astype(np.float32)
    labels = np.digitize(features[:, 0] + features[:, 2] / 1000, [3.8, 4.2]) + 4
    probe = fit_probe(features, labels)
    assert probe.parameters == 6 * 3 + 3
    assert probe.weights.shape == (3, 6)
    scores = features.astype(np.float64) @ probe.weights.T + probe.biases
    accuracy = np.mean(probe.classes[scores.argmax(1)] == labels)
    assert accuracy > 0.95
    assert probe.accuracy(features, labels) == pytest.approx(accuracy, abs=0.01)


def test_probe_of_two_classes_has_two_rows() -> None:
    features, labels = blobs(100, 0, np.array([[0.0, 0.0], [1.0, 1.0]]))
    probe = fit_probe(features, labels)
    assert probe.parameters == 2 * 2 + 2
    assert probe.accuracy(features, labels) == 1


@pytest.mark.filterwarnings("ignore:Clustering into one cluster")
def test_single_class_warns_and_scores() -> None:
    features = np.random.default_rng(0).random((20, 3), dtype=np.float32)
    labels = np.full(20, 6)
    with pytest.warns(UserWarning, match="single class"):
        assert lin_match("full", (features, labels), None).accuracy == 1
    with pytest.warns(UserWarning, match="single class"):
        assert fit_probe(features, labels).accuracy(features, labels) == 1


def test_collapsed_features_warn() -> None:
    features, labels = np.ones((20, 3), np.float32), np.arange(20) % 4
    with pytest.warns(UserWarning, match="collapsed"):
        assert lin_match("full", (features, labels), None).accuracy == pytest.approx(1 / 4)


def test_bad_input_is_named() -> None:
    features = np.ones((3, 2), np.float32)
    with pytest.raises(ScaeError, match="5 clusters were asked for with 3 examples"):
        fit_kmeans(features, 5)
    with pytest.raises(ScaeError, match="NaN"):
        fit_kmeans(features * np.nan, 2)
    with pytest.raises(ScaeError, match="no examples"):
        score_clusters(np.zeros(0, int), np.zeros(0, int))


def test_pixel_baselines_find_bright_and_dark_images() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=80)
    images = (rng.random((80, 1, 6, 6)) * 40 + 150 * labels[:, None, None, None]).astype(np.uint8)
    train, test = (images[:60], labels[:60]), (images[60:], labels[60:])
    both = {"train-test": 1.0, "full": 1.0}
    assert pixel_baselines(train, test, 2) == {"k-means on pixels": both, "PCA + k-means": both}
    assert pixel_baselines(train, None, 2)["PCA + k-means"] == {"full": 1.0}
