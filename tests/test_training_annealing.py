"""Posterior weights that grow and shrink during a training."""

import math

import pytest

from scae.config import LossWeights
from scae.errors import ScaeError
from scae.training.annealing import annealed

WEIGHTS = LossWeights(
    posterior_within=100.0,
    posterior_between=200.0,
    posterior_start=0.04,
    posterior_ramp=0.4,
    posterior_hold=0.6,
    posterior_end=0.01,
)


@pytest.mark.parametrize(
    ("progress", "factor"),
    [(0.0, 0.04), (0.2, 0.2), (0.4, 1.0), (0.5, 1.0), (0.6, 1.0), (0.8, 0.1), (1.0, 0.01)],
)
def test_weights_grow_stay_and_shrink_by_equal_ratios(progress: float, factor: float) -> None:
    found = annealed(WEIGHTS, progress)
    assert math.isclose(found.posterior_within, 100 * factor)
    assert math.isclose(found.posterior_between, 200 * factor)
    assert (found.prior_within, found.part) == (WEIGHTS.prior_within, WEIGHTS.part)


def test_nothing_changes_unless_asked() -> None:
    for progress in (0.0, 0.5, 1.0):
        found = annealed(LossWeights(), progress)
        assert (found.posterior_within, found.posterior_between) == (10.0, 10.0)


@pytest.mark.parametrize(
    "bad",
    [
        {"posterior_start": 0.0},
        {"posterior_end": -1.0},
        {"posterior_ramp": -0.1},
        {"posterior_hold": 1.5},
        {"posterior_ramp": 0.9, "posterior_hold": 0.5},
    ],
)
def test_impossible_ramps_are_named(bad: dict[str, float]) -> None:
    with pytest.raises(ScaeError, match=next(iter(bad))):
        annealed(LossWeights(**bad), 0.1)
