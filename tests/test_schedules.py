"""Schedules of the vote scale and of the posterior weights."""

import pytest

from scae.config import LossWeights, ScheduleConfig
from scae.schedules import loss_weights_at, min_scale_at, posterior_factor_at, ramp


def test_ramp() -> None:
    assert [ramp(x, 0.2, 0.6) for x in (0.0, 0.2, 0.4, 0.6, 1.0)] == pytest.approx(
        [0, 0, 0.5, 1, 1]
    )
    assert ramp(0.0, 0.0, 0.0) == 1  # from the first step
    assert ramp(0.4, 0.5, 0.5) == 0 and ramp(0.5, 0.5, 0.5) == 1
    assert 0 <= ramp(0.1, 0.9, 0.3) <= 1


def test_vote_scale_falls_by_equal_ratios() -> None:
    schedule = ScheduleConfig(min_scale_start=0.5, min_scale_from=0.2, min_scale_until=0.8)
    scales = [min_scale_at(schedule, 0.02, x) for x in (0.1, 0.2, 0.5, 0.8, 1.0)]
    assert scales == pytest.approx([0.5, 0.5, 0.1, 0.02, 0.02])
    assert min_scale_at(ScheduleConfig(), 0.02, 0.0) == 0.02


def test_only_posterior_weights_are_scaled() -> None:
    schedule = ScheduleConfig(posterior_from=0.2, posterior_until=0.6, posterior_power=2)
    weights = LossWeights(posterior_within=8.0, posterior_between=4.0)
    assert posterior_factor_at(schedule, 0.4) == pytest.approx(0.25)
    found = loss_weights_at(weights, schedule, 0.4)
    assert (found.posterior_within, found.posterior_between) == pytest.approx((2, 1))
    assert loss_weights_at(weights, schedule, 0.6) == weights
    assert loss_weights_at(weights, ScheduleConfig(), 0.0) == weights
