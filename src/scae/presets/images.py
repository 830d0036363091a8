"""The preset `images`: sizes chosen from the user's own images and number of clusters."""

import math
from dataclasses import replace

from scae.config import ImageDataConfig, ImageExperiment, TrainingConfig
from scae.errors import ScaeError
from scae.presets import recipe

CAPSULES_PER_CLUSTER = 2.4
"""The paper's 24 object capsules for MNIST's 10 classes."""
FEWEST_OBJECTS = 8
TEMPLATE_SHARE = 0.39
"""The paper's 11-pixel templates on 28-pixel images."""
BATCH = 64
EPOCHS = 60
FEWEST_STEPS, MOST_STEPS = 4_000, 22_000

# Strides of the 3x3 convolutions, from the smallest image side they suit. Enough stride that
# the last feature map stays at MNIST's 3x3 to 8x8 positions, little enough that it exists.
STRIDES: tuple[tuple[int, tuple[int, ...]], ...] = (
    (64, (2, 2, 2, 1)),
    (23, (2, 2, 1, 1)),
    (13, (1, 2, 1, 1)),
    (9, (1, 1, 1, 1)),
    (5, (1, 1)),
)
SMALLEST_SIDE = STRIDES[-1][0]


def strides_for(side: int) -> tuple[int, ...]:
    """Strides of the part encoder for images whose shorter side is `side` pixels."""
    for least, strides in STRIDES:
        if side >= least:
            return strides
    raise ScaeError(
        f"Images of {side} pixels are too small for the part encoder, which needs at least "
        f"{SMALLEST_SIDE} pixels on each side; enlarge them first."
    )


def for_images(
    height: int, width: int, channels: int, clusters: int, n_images: int, name: str = "images"
) -> ImageExperiment:
    """A complete experiment for `n_images` images of one size that form `clusters` clusters.

    `name` is what the data is called, or the path it is read from.
    """
    if clusters < 1:
        raise ScaeError(f"The number of clusters must be at least 1, got {clusters}.")
    if n_images < 2:
        raise ScaeError(f"At least 2 images are needed to learn from, got {n_images}.")
    side = min(height, width)
    strides = strides_for(side)
    batch = min(BATCH, n_images)
    steps = min(MOST_STEPS, max(FEWEST_STEPS, EPOCHS * n_images // batch))
    return ImageExperiment(
        name="images",
        reference="not in the paper: your own images, MNIST's row of tables 3 and 4",
        model=replace(
            recipe.MODEL,
            image_size=(height, width),
            channels=channels,
            objects=max(FEWEST_OBJECTS, math.ceil(CAPSULES_PER_CLUSTER * clusters)),
            classes=clusters,  # the sparsity targets K/C and B/C
            template_size=max(3, round(TEMPLATE_SHARE * side)),
            cnn_channels=(128,) * len(strides),
            cnn_strides=strides,
            # As for SVHN and CIFAR-10: in colour photographs shape matters more than colour.
            target="sobel" if channels == 3 else "raw",
        ),
        loss=recipe.LOSS,
        schedule=recipe.SCHEDULE,
        data=ImageDataConfig(name=name),
        optimizer=recipe.short(recipe.OPTIMIZER, steps),
        training=TrainingConfig(steps=steps, batch=batch),
    )


def images() -> ImageExperiment:
    """Your own images; sizes are read from them, the number of clusters is yours to give."""
    return for_images(height=28, width=28, channels=1, clusters=10, n_images=10_000)
