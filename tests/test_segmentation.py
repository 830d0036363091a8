"""Segmentation scores: hand-computed scenes and brute force."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scae.errors import ScaeError
from scae.evaluation.segmentation import baselines, segmentation_error


def error(pred: list[int], labels: list[int], presence: list[int] | None = None) -> float:
    """Error of one scene; all its points are present unless said."""
    present = np.array([presence or [1] * len(pred)])
    return segmentation_error(np.array([pred]), np.array([labels]), present)


def test_hand_computed_scenes() -> None:
    # Objects 0,0,0 | 1,1 with one point of object 0 given to the capsule of object 1.
    labels, pred = np.array([[0, 0, 0, 1, 1, 7]]), np.array([[5, 5, 2, 2, 2, 5]])
    found = segmentation_error(pred, labels, np.array([[1, 1, 1, 1, 1, 0]]))
    assert found == pytest.approx(1 / 5)
    # The released score gives 8/8 and 4/8 to these two numberings of one segmentation.
    assert error([0, 0, 0, 0, 1, 1, 1, 1], [0] * 4 + [1] * 4) == 0
    assert error([0, 0, 0, 0, 2, 2, 2, 2], [0] * 4 + [1] * 4) == 0
    # Present points without a capsule are errors, and capsules cannot share an object.
    assert error([-1, -1, 4], [0, 0, 1]) == pytest.approx(2 / 3)
    assert error([-1, -1, -1], [0, 0, 0]) == 1
    assert error([0, 0, 1, 1, 2], [3, 3, 3, 3, 3]) == pytest.approx(3 / 5)


def test_error_is_pooled_and_empty_scenes_are_left_out() -> None:
    labels = np.array([[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1]])
    pred = np.array([[1, 1, 1, 1], [2, 2, 0, 0], [0, 0, 0, 0]])
    presence = np.array([[1.0, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]])
    assert segmentation_error(pred, labels, presence) == pytest.approx(1 / 6)
    with pytest.raises(ScaeError, match="present point"):
        error([0, 0], [0, 0], [0, 0])
    with pytest.raises(ScaeError, match="negative object label"):
        error([0, 1], [0, -1])


@settings(max_examples=60, deadline=None)
@given(rng=st.integers(0, 2**32 - 1).map(np.random.default_rng))
def test_against_brute_force(rng: np.random.Generator) -> None:
    pred, labels = rng.integers(4, size=(6, 7)), rng.integers(3, size=(6, 7))
    presence = rng.integers(2, size=(6, 7)).astype(np.float32)
    presence[:, 0] = 1
    numbers = np.stack([rng.permutation(50)[:4] for _ in range(6)])  # other ones in each scene
    found = segmentation_error(np.take_along_axis(numbers, pred, 1), labels, presence)
    correct = 0
    for p, g, present in zip(pred, labels, presence > 0, strict=True):
        p, g = p[present], g[present]
        correct += max(np.sum(np.array(names)[p] == g) for names in permutations(range(4)))
    assert found == pytest.approx(1 - correct / presence.sum())


def test_baselines() -> None:
    labels = np.array([[0, 0, 0, 1, 1, 2], [0, 1, 1, 2, 2, 2]])
    presence = np.array([[1, 1, 1, 1, 1, 0], [1, 0, 0, 1, 0, 0]])
    assert baselines(labels, presence, 3)["single capsule"] == pytest.approx(3 / 7)
    labels = np.tile([0, 0, 1, 1], (4000, 1))
    # Two of each, two capsules: 16 equally likely assignments, best matches by hand:
    # 2 with 4 right, 8 with 3 right, 6 with 2 right.
    expected = 1 - (2 * 4 + 8 * 3 + 6 * 2) / 64
    chance = baselines(labels, np.ones_like(labels), capsules=2)["chance"]
    assert chance == pytest.approx(expected, abs=0.02)
