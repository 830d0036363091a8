"""The recommended way to train images: what the paper leaves open, in one place.

The paper's 300 000 steps at a learning rate of 1e-5 take a day of GPU. With parts that start
small and visible and a smallest vote scale that falls during training, the same losses find
objects in a small fraction of the steps. docs/training.md measures what each choice bought;
the literal presets (`…-paper`, `…-release`) use none of it.
"""

from dataclasses import replace

from scae.config import LossWeights, OptimizerConfig, ScheduleConfig, StackedConfig

# Fields left out are MNIST's column of table 3.
MODEL = StackedConfig(
    # Pixels weigh sixteen times as much as at the release's 1, where the errors of all of them
    # together barely outweigh the constants of the likelihood.
    sigma=0.25,
    # Parts start at a quarter of the image, visible and opaque in the middle, on black: they
    # become strokes instead of frames as large as the canvas.
    part_scale_init=-1.0,
    part_presence_init=2.0,
    alpha_init=3.0,
    background="black",
    # Poses of parts vary by about 0.1: far more precise votes make objects copy single parts.
    min_scale=0.02,
)

LOSS = LossWeights(
    # Table 4 has 10, 1, 1, 10, 10. Eq. 13 sums over the batch: at 1, equal faint presences are
    # its optimum.
    deformation=1.0,
    prior_within=1.0,
    prior_between=0.3,
    # Twice the paper's in the end, nothing at first.
    posterior_within=20.0,
    posterior_between=20.0,
)

SCHEDULE = ScheduleConfig(min_scale_start=0.5, posterior_from=0.2, posterior_until=0.9)

POINTS = OptimizerConfig(
    name="adam",  # forgiving about the scale of the two levels' gradients
    lr=4e-4,
    schedule="cosine",
    warmup=500,
    final_lr=0.02,
    average=0.999,  # evaluation uses averaged weights
)

OPTIMIZER = replace(
    POINTS,
    lr=1e-3,  # a hundred times the paper's
    template_lr=10.0,  # pixels are single numbers with far to go
    object_lr=2.0,  # objects follow parts that still move
    warmup=200,
)


def short(optimizer: OptimizerConfig, steps: int) -> OptimizerConfig:
    """The same optimiser for few steps: warm-up and averaging must fit inside them."""
    return replace(optimizer, warmup=min(optimizer.warmup, max(1, steps // 20)), average=0.995)
