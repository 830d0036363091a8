"""What changes while training: the smallest vote scale and the posterior sparsity weights.

A high floor on lambda lets every object explain everything a little; as it falls, objects come
to differ. Posterior sparsity that rises meanwhile makes each image choose among them: the
deterministic annealing of a mixture model. docs/training.md has the measurements.

`progress` is the share of the training that is done, from 0 to 1.
"""

from dataclasses import replace

from scae.config import LossWeights, ScheduleConfig


def ramp(progress: float, start: float, end: float) -> float:
    """0 until `start`, 1 from `end` on, linear between them."""
    if progress >= end:
        return 1.0
    if progress <= start:
        return 0.0
    return (progress - start) / (end - start)


def min_scale_at(schedule: ScheduleConfig, final: float, progress: float) -> float:
    """Smallest standard deviation of a vote: from `min_scale_start` to `final` by equal ratios."""
    if schedule.min_scale_start is None:
        return final
    done = ramp(progress, schedule.min_scale_from, schedule.min_scale_until)
    return schedule.min_scale_start * (final / schedule.min_scale_start) ** done


def posterior_factor_at(schedule: ScheduleConfig, progress: float) -> float:
    """Factor on both posterior sparsity weights, from 0 to 1."""
    share = ramp(progress, schedule.posterior_from, schedule.posterior_until)
    return share**schedule.posterior_power


def loss_weights_at(weights: LossWeights, schedule: ScheduleConfig, progress: float) -> LossWeights:
    """The loss weights with the posterior ones scaled by `posterior_factor_at`."""
    factor = posterior_factor_at(schedule, progress)
    return replace(
        weights,
        posterior_within=factor * weights.posterior_within,
        posterior_between=factor * weights.posterior_between,
    )
