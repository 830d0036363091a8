"""Posterior weights that grow during a training."""

import math

import pytest

from scae.config import LossWeights
from scae.errors import ScaeError
from scae.training.annealing import annealed

WEIGHTS = LossWeights(
    posterior_within=100.0, posterior_between=200.0, posterior_start=0.04, posterior_ramp=0.5
)


def test_weights_grow_by_equal_ratios_and_then_stay() -> None:
    found = [annealed(WEIGHTS, progress) for progress in (0.0, 0.25, 0.5, 0.9)]
    for weights, factor in zip(found, (0.04, 0.2, 1.0, 1.0), strict=True):
        assert math.isclose(weights.posterior_within, 100 * factor)
        assert math.isclose(weights.posterior_between, 200 * factor)
        assert (weights.prior_within, weights.part) == (WEIGHTS.prior_within, WEIGHTS.part)


def test_nothing_changes_unless_asked() -> None:
    assert annealed(LossWeights(), 0.1) == LossWeights()


@pytest.mark.parametrize("bad", [{"posterior_start": 0.0}, {"posterior_ramp": -0.1}])
def test_impossible_ramps_are_named(bad: dict[str, float]) -> None:
    with pytest.raises(ScaeError, match=next(iter(bad))):
        annealed(LossWeights(**bad), 0.1)
