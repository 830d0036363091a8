"""What figures look at: a model's explanation of a few well-chosen examples."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from scae.evaluation.segmentation import score_segmentation
from scae.models import CapsuleModel, StackedCapsuleAutoencoder
from scae.models.stacked import StackedExplanation


@contextmanager
def looking(model: CapsuleModel) -> Iterator[torch.device]:
    """Evaluation mode without gradients; mode and random state are left as they were."""
    training = model.training
    device = next(model.parameters()).device
    model.eval()
    try:
        with torch.inference_mode(), torch.random.fork_rng():
            torch.manual_seed(0)  # for models that keep their noise in evaluation
            yield device
    finally:
        model.train(training)


def array(tensor: Tensor) -> np.ndarray:
    """A tensor as float64 (or integers) for drawing."""
    host = tensor.detach().cpu()
    return host.double().numpy() if host.is_floating_point() else host.numpy()


def explain(
    model: StackedCapsuleAutoencoder, images: Float[Tensor, "batch channels height width"]
) -> StackedExplanation:
    """The model's explanation of images, as evaluation would see it."""
    with looking(model) as device:
        return model.explain(images.to(device))


def one_per_class(labels: Int[np.ndarray, " n"] | None, total: int, count: int) -> list[int]:
    """Indices of `count` examples: one of each class in turn, or the first ones."""
    if labels is None:
        return list(range(min(count, total)))
    classes = np.unique(labels)
    rows = [np.flatnonzero(labels == c) for c in classes]
    depth = max(len(r) for r in rows)
    turns = [int(r[i]) for i in range(depth) for r in rows if i < len(r)]
    chosen = turns[:count]
    return sorted(chosen, key=lambda i: (labels[i], i))


def scene_errors(
    segments: Int[np.ndarray, "scenes points"],
    labels: Int[np.ndarray, "scenes points"],
    presence: Float[np.ndarray, "scenes points"],
) -> Float[np.ndarray, " scenes"]:
    """Share of wrong points of each scene; NaN where a scene has none."""
    errors = np.full(len(segments), np.nan)
    for i in np.flatnonzero((presence > 0.5).any(1)):
        rows = slice(i, i + 1)
        errors[i] = score_segmentation(segments[rows], labels[rows], presence[rows]).error
    return errors


def good_and_bad_scenes(
    errors: Float[np.ndarray, " scenes"],
    presence: Float[np.ndarray, "scenes points"],
    good: int,
    bad: int,
) -> tuple[list[int], list[int]]:
    """The fullest scenes without an error, and the worst ones that are not nearly empty."""
    size = presence.sum(1)
    flawless = np.flatnonzero(errors == 0)
    best = flawless[np.argsort(-size[flawless], kind="stable")][:good]
    flawed = np.flatnonzero(errors > 0)
    # A failure is worth seeing where several constellations could be confused.
    full = flawed[size[flawed] >= 0.6 * presence.shape[1]]
    flawed = full if len(full) >= bad else flawed
    worst = flawed[np.argsort(-errors[flawed], kind="stable")][:bad]
    return best.tolist(), worst.tolist()
