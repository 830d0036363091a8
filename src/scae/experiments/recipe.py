"""The recommended way to train: every number that the paper leaves open, in one place.

The paper's 300 000 steps at a learning rate of 1e-5 take a day of GPU; the recipe reaches the
same kind of solution in a small fraction of the steps. What each change bought is measured in
docs/training.md; the literal presets (`…-paper`, `…-release`) use none of it.
"""

from dataclasses import replace
from typing import Literal

from scae.config import Experiment, LossWeights, OptimizerConfig, TrainingConfig

SIGMA = 0.25
"""Standard deviation of a pixel. The strongest lever: at the release's 1, the errors of all
pixels together barely outweigh the constants of the likelihood."""

IMAGES = OptimizerConfig(
    name="adam",  # forgiving about the scale of the two levels' gradients
    lr=4e-4,  # forty times the paper's: stable together with warm-up and Adam
    template_lr=20.0,  # pixels are single numbers with far to go; see docs/training.md
    object_lr=2.0,  # objects chase parts that still move
    betas=(0.9, 0.999),
    schedule="cosine",  # the curve still rises at a constant rate: anneal to the last step
    warmup=200,  # the templates are noise at first and their gradients large
    final_lr=0.02,
    average=0.999,  # evaluation on averaged weights: less noise between checkpoints
)

SPARSITY = LossWeights(
    # Table 4 has 1, 1, 10, 10. Eq. 13 sums over the batch: at 1, evenly lukewarm presences are
    # its optimum, and no object ever makes up its mind.
    prior_between=0.3,
    # Ten and twenty times the paper's in the end, a twentieth of that at first: raised slowly,
    # sparsity makes objects choose between images instead of dividing the parts of each.
    posterior_within=100.0,
    posterior_between=200.0,
    posterior_start=0.05,
    posterior_ramp=0.2,
    # Back to the paper's: objects that have chosen explain better under less of it.
    posterior_hold=0.4,
    posterior_end=0.1,
)

GUIDED = LossWeights(
    prior_between=0.3,
    # Groups of images, found in minutes when parts are finished (`training.groups`).
    guidance=20.0,
)
"""Table 4, and guidance while objects learn."""

STAGED_IMAGES = replace(IMAGES, object_lr=5.0)  # parts hardly move any more, so objects can hurry

POINTS = OptimizerConfig(
    name="adam",
    lr=4e-4,
    betas=(0.9, 0.999),
    schedule="cosine",
    warmup=500,
    final_lr=0.02,
    average=0.999,
)


BATCH = 32
"""A quarter of the paper's: three times as many updates in the same time."""


def image_schedule(steps: int, batch: int = BATCH) -> TrainingConfig:
    """A training of `steps` updates of both levels together."""
    return TrainingConfig(steps=steps, batch=batch)


def staged_schedule(
    part_steps: int,
    object_steps: int,
    joint_steps: int = 0,
    batch: int = BATCH,
    jitter: float = 0.0,
    groups: Literal["poses", "edges", "both"] = "poses",
) -> TrainingConfig:
    """Parts alone, then objects on fixed parts, in which groups are found, then both."""
    steps = part_steps + object_steps + joint_steps
    return TrainingConfig(
        steps=steps,
        batch=batch,
        part_share=part_steps / steps,
        object_share=object_steps / steps,
        jitter=jitter,
        groups=groups,
    )


def unstaged(experiment: Experiment) -> Experiment:
    """The same with all losses from the first step on: no stages, and nothing they prepare."""
    training = replace(
        experiment.training, part_share=0.0, object_share=0.0, start_from=None, jitter=0.0
    )
    return replace(experiment, training=training, loss=replace(experiment.loss, guidance=0.0))


def point_schedule(steps: int, batch: int = 64) -> TrainingConfig:
    """A training of `steps` updates on points, which have no part level."""
    return TrainingConfig(steps=steps, batch=batch)


def short_losses(weights: LossWeights) -> LossWeights:
    """The same losses for few steps: objects need most of them before they can choose well.

    MNIST, 3 000 steps: 54.4 % LIN-MATCH instead of 35.9 % with shares meant for 22 000.
    """
    if weights.posterior_end >= 1:  # never relaxed, so there is nothing to put off
        return weights
    return replace(weights, posterior_ramp=0.7, posterior_hold=1.0, posterior_end=1.0)


def short(optimizer: OptimizerConfig, steps: int) -> OptimizerConfig:
    """The same optimiser for few steps: warm-up and averaging must fit inside them."""
    return replace(optimizer, warmup=min(optimizer.warmup, max(1, steps // 20)), average=0.995)
