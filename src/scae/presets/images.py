"""The preset `images`: sizes chosen from the user's own images and number of clusters."""

import math
from dataclasses import replace

from scae.config import ImageDataConfig, ImageExperiment, TrainingConfig
from scae.errors import ScaeError
from scae.presets import recipe
from scae.presets.recommended import mnist

CAPSULES_PER_CLUSTER = 2.4
"""The paper's 24 object capsules for MNIST's 10 classes."""
MIN_OBJECTS = 8
TEMPLATE_SHARE = 0.39
"""The paper's 11-pixel templates on 28-pixel images."""
BATCH = 64
EPOCHS = 60
MIN_STEPS, MAX_STEPS = 4_000, 22_000

# Strides of the 3x3 convolutions, from the smallest image side they suit. Enough stride that
# the last feature map stays at MNIST's 3x3 to 8x8 positions, little enough that it exists.
STRIDES: dict[int, tuple[int, ...]] = {
    64: (2, 2, 2, 1),
    23: (2, 2, 1, 1),
    13: (1, 2, 1, 1),
    9: (1, 1, 1, 1),
    5: (1, 1),
}


def for_images(
    height: int, width: int, channels: int, clusters: int, n_images: int, name: str = "images"
) -> ImageExperiment:
    """A complete experiment for `n_images` images of one size that form `clusters` clusters.

    `name` is what the data is called, or the path it is read from.
    """
    side = min(height, width)
    if clusters < 1 or n_images < 2 or side < min(STRIDES):
        raise ScaeError(
            f"{n_images} images of {height}x{width} pixels in {clusters} clusters are too few or "
            f"too small: at least 2 images, {min(STRIDES)} pixels and 1 cluster are needed."
        )
    if clusters > n_images:
        raise ScaeError(f"{clusters} are more clusters than the {n_images} images; ask for fewer.")
    strides = next(strides for least, strides in STRIDES.items() if side >= least)
    batch = min(BATCH, n_images)
    steps = min(MAX_STEPS, max(MIN_STEPS, EPOCHS * n_images // batch))
    return replace(
        mnist(),
        name="images",
        reference="not in the paper: your own images, MNIST's row of tables 3 and 4",
        model=replace(
            recipe.MODEL,
            image_size=(height, width),
            channels=channels,
            objects=max(MIN_OBJECTS, math.ceil(CAPSULES_PER_CLUSTER * clusters)),
            classes=clusters,  # the sparsity targets K/C and B/C
            template_size=max(3, round(TEMPLATE_SHARE * side)),
            cnn_channels=(128,) * len(strides),
            cnn_strides=strides,
            # As for SVHN and CIFAR-10: in colour photographs shape matters more than colour.
            target="sobel" if channels == 3 else "raw",
        ),
        data=ImageDataConfig(name=name),
        optimizer=recipe.short(recipe.OPTIMIZER, steps),
        training=TrainingConfig(steps=steps, batch=batch),
    )


def images() -> ImageExperiment:
    """Your own images; sizes are read from them, the number of clusters is yours to give."""
    return for_images(height=28, width=28, channels=1, clusters=10, n_images=10_000)
