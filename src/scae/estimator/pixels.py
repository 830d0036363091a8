"""Scikit-learn's X as images: any layout, flat included."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_non_negative, validate_data

from scae.api.inputs import SLACK
from scae.data.arrays import from_arrays
from scae.data.interface import ImageData
from scae.errors import ScaeError

Shape = tuple[int, int, int]
"""Channels, height, width."""


def read_images(
    estimator: Any, X: Any, image_shape: Shape | None, reset: bool
) -> tuple[ImageData, Shape]:
    """Images of X as bytes; flat rows are read in the shape (height, width[, channels]).

    Scikit-learn's own checks (numbers only, finite, as many features as in `fit`) are made on
    the flat rows; float pixels are rounded to 256 levels, in training and prediction alike.
    """
    if not hasattr(X, "ndim"):
        X = np.asarray(X) if not hasattr(X, "columns") else X
    if X.ndim > 2 and not hasattr(X, "columns"):
        X = channels_first(np.asarray(X))
        image_shape = X.shape[1:]
        X = X.reshape(len(X), -1)
        flat = validated(estimator, X, reset)
    else:
        flat = validated(estimator, X, reset)
        if image_shape is None:
            raise ScaeError(
                f"X is flat ({flat.shape[1]} features): give image_shape=(height, width) or "
                "(height, width, channels), or images as (N, H, W)."
            )
        channels, height, width = image_shape
        if channels * height * width != flat.shape[1]:
            raise ScaeError(
                f"X has {flat.shape[1]} features, which are no {height}x{width} images with "
                f"{channels} channels; give another image_shape."
            )
        flat = flat.reshape(len(flat), height, width, channels).transpose(0, 3, 1, 2)
    assert image_shape is not None
    return to_bytes(flat.reshape(len(flat), *image_shape)), image_shape


def validated(estimator: Any, X: Any, reset: bool) -> np.ndarray:
    """Scikit-learn's checks: at least two finite rows of numbers that are not negative."""
    flat = validate_data(estimator, X, reset=reset, ensure_min_samples=2 if reset else 1)
    check_non_negative(flat, type(estimator).__name__)
    return np.asarray(flat)


def to_bytes(pixels: np.ndarray) -> ImageData:
    """(N, C, H, W) as bytes, or one sentence about their range."""
    if pixels.dtype.kind == "f" and pixels.min() >= -SLACK and pixels.max() <= 1 + SLACK:
        pixels = pixels.clip(0, 1)  # scalers overshoot by rounding
    return from_arrays(pixels, name="X")


def channels_first(images: np.ndarray) -> np.ndarray:
    """(N, C, H, W) of (N, H, W), (N, H, W, C) or (N, C, H, W) with 1 or 3 channels."""
    if images.ndim == 3:
        return images[:, None]
    if images.ndim == 4 and images.shape[3] in (1, 3):
        return images.transpose(0, 3, 1, 2)
    if images.ndim == 4 and images.shape[1] in (1, 3):
        return images
    raise ScaeError(
        f"X has shape {images.shape}; expected (N, H, W), (N, H, W, C), (N, C, H, W) with 1 or 3 "
        "channels, or flat rows with image_shape."
    )


def shape_of(image_shape: Any) -> Shape | None:
    """The parameter `image_shape`, (height, width) or (height, width, channels)."""
    if image_shape is None:
        return None
    sizes = tuple(int(size) for size in image_shape)
    if len(sizes) not in (2, 3) or min(sizes) < 1:
        raise ScaeError(f"image_shape is {image_shape}; expected (height, width[, channels]).")
    return (sizes[2] if len(sizes) == 3 else 1, sizes[0], sizes[1])
