"""Scikit-learn's X as images or scenes: arrays, tables, lists and files."""

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from sklearn.utils.validation import validate_data

from scae.api.points import scene_batch
from scae.data import ImageData, Scenes, from_arrays, read_points
from scae.data.images import SLACK, image_array
from scae.errors import ScaeError
from scae.prediction import read_files

# Images of fewer pixels a side are padded: the part encoder needs some room.
MIN_SIDE = 8


def read_images(estimator: Any, X: Any, reset: bool) -> ImageData:
    """Images of X as bytes; with `reset`, what `fit` learns about them is kept in `estimator`.

    Scikit-learn's own checks (numbers only, finite, as many features as in `fit`) are made on
    flat rows. Floats are rounded to 256 levels, in training and prediction alike.
    """
    items = X if isinstance(X, list | tuple) else getattr(X, "tolist", list)()
    if items and isinstance(items, list | tuple) and isinstance(items[0], str | Path):
        X = read_files(list(items)).images
    layout, flat = None, X
    if not hasattr(X, "columns") and (array := np.asarray(X)).ndim > 2:
        layout, flat = array.shape, array.reshape(len(array), -1)
    flat = validate_data(estimator, flat, reset=reset, ensure_min_samples=2 if reset else 1)
    if reset:
        estimator.pixel_range_ = _pixel_range(flat)
    if estimator.pixel_range_ is not None:
        low, high = estimator.pixel_range_
        flat = ((flat.astype(np.float64) - low) / (high - low)).clip(0, 1)
    images = flat.reshape(layout) if layout else _from_rows(flat, estimator.image_shape)
    if not reset:
        channels, *size = estimator.image_shape_
        images = image_array(images, "X", channels, tuple(size))
    data = from_arrays(images, name="X")
    if reset:
        estimator.image_shape_ = tuple(data.images.shape[1:])
    return data


def _pixel_range(flat: np.ndarray) -> tuple[float, float] | None:
    """None for bytes and floats from 0 to 1; of other numbers, their range is black to white."""
    low, high = float(flat.min()), float(flat.max())
    top = 1 + SLACK if flat.dtype.kind == "f" else 255
    if flat.dtype.kind == "b" or (low >= -SLACK and high <= top):
        return None
    return low, high if high > low else low + 1


def _from_rows(flat: np.ndarray, image_shape: Any) -> np.ndarray:
    """Flat rows as images of `image_shape`, (height, width[, channels]), or as squares."""
    count, features = flat.shape
    if image_shape is not None:
        if len(image_shape) not in (2, 3) or math.prod(image_shape) != features:
            raise ScaeError(
                f"X has {features} features and image_shape is {image_shape}; expected (height, "
                "width[, channels]) with that product."
            )
        return flat.reshape(count, *image_shape)
    side = math.isqrt(features - 1) + 1
    if side * side != features:
        warnings.warn(
            f"X has {features} features, which are no square image: they are read as the first "
            f"pixels of {side}x{side} ones; give image_shape=(height, width[, channels]).",
            stacklevel=2,
        )
    square = np.pad(flat, ((0, 0), (0, side * side - features))).reshape(count, side, side)
    pad = max(0, MIN_SIDE - side)
    edges = (pad // 2, pad - pad // 2)
    return np.pad(square, ((0, 0), edges, edges))


def read_scenes(X: Any) -> Scenes:
    """Scenes of X with their presences; absent points are NaN.

    X is (scenes, points, 2), a list of (points, 2), a table with the columns scene, x and y,
    or a CSV or .npz file of points.
    """
    if isinstance(X, str | Path):
        found = read_points(X)
        return Scenes(*scene_batch(found.points, found.presence), None, "X")
    points = _padded(X)
    presence = (~np.isnan(points).any(-1)).astype(np.float32)
    if not presence.any(-1).all():
        raise ScaeError("X has a scene without any points; leave it out.")
    return Scenes(*scene_batch(points, presence), None, "X")


def _padded(X: Any) -> Float[np.ndarray, "scenes points 2"]:
    """Scenes of different lengths side by side, padded with NaN."""
    if hasattr(X, "columns"):
        if not {"scene", "x", "y"} <= set(X.columns):
            raise ScaeError("X is a table without the columns scene, x and y.")
        table = np.stack([np.asarray(X["x"]), np.asarray(X["y"])], -1)
        scene = np.asarray(X["scene"])
        X = [table[scene == name] for name in np.unique(scene)]
    if isinstance(X, torch.Tensor | np.ndarray):
        array = np.asarray(X)
        if array.dtype.kind not in "biuf" or array.ndim != 3 or array.shape[2] != 2:
            raise ScaeError(
                f"X has shape {array.shape} and holds {array.dtype}; expected numbers of shape "
                "(scenes, points, 2), or a list of (points, 2) arrays."
            )
        padded = array.astype(np.float64)
    else:
        scenes = [np.asarray(scene, dtype=np.float64) for scene in X]
        bad = next((s.shape for s in scenes if s.ndim != 2 or s.shape[1] != 2), None)
        if bad is not None:
            raise ScaeError(f"X has a scene of shape {bad}; expected (points, 2).")
        padded = np.full((len(scenes), max(map(len, scenes), default=0), 2), np.nan)
        for row, scene in zip(padded, scenes, strict=True):
            row[: len(scene)] = scene
    if 0 in padded.shape:
        raise ScaeError(f"X is empty (shape {padded.shape}); give at least one scene of a point.")
    return padded
