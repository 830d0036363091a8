"""Segmentation scores: hand-computed scenes, brute force, scikit-learn, invariances."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from scae.errors import ScaeError
from scae.evaluation.segmentation import (
    chance_baseline,
    score_segmentation,
    single_capsule_baseline,
)


def scene(*values: int) -> np.ndarray:
    return np.array([values])


def test_hand_computed_scene() -> None:
    # Objects 0,0,0 | 1,1 with one point of object 0 given to the capsule of object 1.
    labels, pred = scene(0, 0, 0, 1, 1, 7), scene(5, 5, 2, 2, 2, 5)
    scores = score_segmentation(pred, labels, scene(1, 1, 1, 1, 1, 0))
    assert scores.error == pytest.approx(1 / 5)
    # Pairs: 2 together in both, 4 together in each, 10 in all: (2 - 1.6) / (4 - 1.6).
    assert scores.ari == pytest.approx((2 - 1.6) / (4 - 1.6))
    assert (scores.scenes, scores.points) == (1, 5)


def test_error_is_pooled_over_points_and_scenes_are_averaged() -> None:
    labels = np.array([[0, 0, 0, 0], [0, 1, 0, 0]])
    pred = np.array([[1, 1, 1, 1], [2, 2, 0, 0]])
    presence = np.array([[1.0, 1, 1, 1], [1, 1, 0, 0]])
    scores = score_segmentation(pred, labels, presence)
    assert scores.error == pytest.approx(1 / 6)


def test_dead_capsule_does_not_change_the_score() -> None:
    """The released score gives 8/8 and 4/8 to these two numberings of one segmentation."""
    labels = scene(0, 0, 0, 0, 1, 1, 1, 1)
    presence = np.ones_like(labels)
    for pred in (scene(0, 0, 0, 0, 1, 1, 1, 1), scene(0, 0, 0, 0, 2, 2, 2, 2)):
        assert score_segmentation(pred, labels, presence).error == 0


def test_unassigned_present_points_are_errors() -> None:
    presence = np.ones((1, 3))
    assert score_segmentation(scene(-1, -1, 4), scene(0, 0, 1), presence).error == (
        pytest.approx(2 / 3)
    )
    assert score_segmentation(scene(-1, -1, -1), scene(0, 0, 0), presence).error == 1


def test_more_capsules_than_objects_cannot_share_an_object() -> None:
    scores = score_segmentation(scene(0, 0, 1, 1, 2), scene(3, 3, 3, 3, 3), np.ones((1, 5)))
    assert scores.error == pytest.approx(3 / 5)


def test_empty_scenes_are_left_out_and_counted() -> None:
    labels = np.array([[0, 1], [0, 1]])
    presence = np.array([[1, 1], [0, 0]])
    scores = score_segmentation(np.array([[0, 1], [0, 0]]), labels, presence)
    assert (scores.error, scores.scenes) == (0, 1)
    with pytest.raises(ScaeError, match="present point"):
        score_segmentation(labels, labels, np.zeros((2, 2)))


def test_negative_label_of_a_present_point_is_refused() -> None:
    with pytest.raises(ScaeError, match="negative object label"):
        score_segmentation(scene(0, 1), scene(0, -1), np.ones((1, 2)))


SCENES = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@settings(max_examples=60, deadline=None)
@given(rng=SCENES)
def test_against_brute_force_and_scikit_learn(rng: np.random.Generator) -> None:
    pred, labels = rng.integers(4, size=(6, 7)), rng.integers(3, size=(6, 7))
    presence = rng.integers(2, size=(6, 7)).astype(np.float32)
    presence[:, 0] = 1
    scores = score_segmentation(pred, labels, presence)
    correct, indices = 0, []
    for p, g, present in zip(pred, labels, presence > 0, strict=True):
        p, g = p[present], g[present]
        correct += max(np.sum(np.array(names)[p] == g) for names in permutations(range(4)))
        indices.append(adjusted_rand_score(g, p))
    assert scores.error == pytest.approx(1 - correct / presence.sum())
    assert scores.ari == pytest.approx(np.mean(indices))


@settings(max_examples=60, deadline=None)
@given(rng=SCENES)
def test_invariant_under_renumbering(rng: np.random.Generator) -> None:
    pred, labels = rng.integers(3, size=(5, 8)), rng.integers(4, size=(5, 8))
    presence = rng.integers(2, size=(5, 8))
    presence[0, 0] = 1
    capsules = np.stack([rng.permutation(50)[:3] for _ in range(5)])  # new in every scene
    objects = np.stack([rng.permutation(50)[:4] for _ in range(5)])
    order = rng.permutation(8)
    renamed = score_segmentation(
        np.take_along_axis(capsules, pred, 1)[:, order],
        np.take_along_axis(objects, labels, 1)[:, order],
        presence[:, order],
    )
    original = score_segmentation(pred, labels, presence)
    assert vars(renamed) == pytest.approx(vars(original))


def test_baselines() -> None:
    labels = np.array([[0, 0, 0, 1, 1, 2], [0, 1, 1, 2, 2, 2]])
    presence = np.array([[1, 1, 1, 1, 1, 0], [1, 0, 0, 1, 0, 0]])
    assert single_capsule_baseline(labels, presence).error == pytest.approx(3 / 7)
    labels = np.tile([0, 0, 1, 1], (4000, 1))
    # Two of each, two capsules: 16 equally likely assignments, best matches by hand:
    # 2 with 4 right, 8 with 3 right, 6 with 2 right.
    expected = 1 - (2 * 4 + 8 * 3 + 6 * 2) / 64
    chance = chance_baseline(labels, np.ones_like(labels), capsules=2)
    assert chance.error == pytest.approx(expected, abs=0.02)
    assert abs(chance.ari) < 0.03
