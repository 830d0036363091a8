"""Scenes of point patterns under random similarity transforms (section 3.1).

Each pattern p of a scene is kept with probability `keep` and placed as in the release,

    x = s R(theta) p + t,   s ~ U[scale],  theta ~ U[-max_rotation, max_rotation],
                            t ~ U[0, translation]^2 / s,

that is, rotated about the origin (not its centre) and shifted less the larger it is.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64

from scae.config import ConstellationDataConfig, Pattern
from scae.data.points import Scenes, global_range
from scae.data.streams import SCENE, stream

# Squares and triangles have the release's coordinates and order: side 2 around (2, 2).
PATTERNS: dict[Pattern, tuple[tuple[float, float], ...]] = {
    "square": ((3, 3), (1, 1), (3, 1), (1, 3)),
    "triangle": ((1, 2), (3, 1), (3, 3)),
    "pentagon": tuple(
        (float(2 + np.sin(2 * np.pi * i / 5)), float(2 + np.cos(2 * np.pi * i / 5)))
        for i in range(5)
    ),
    "L": ((1, 1), (1, 2), (1, 3), (2, 1)),
}

# The release maps 100 batches of 64 scenes by one range.
BATCHES_PER_RANGE = 100
SCENES_PER_RANGE = 6400


@dataclass(frozen=True)
class Draws:
    """All that is random in scenes; uniform numbers lie in [0, 1)."""

    rotation: Float[np.ndarray, "scenes patterns"]
    scale: Float[np.ndarray, "scenes patterns"]
    translation: Float[np.ndarray, "scenes patterns 2"]
    kept: Float[np.ndarray, "scenes patterns"]
    """1 where a pattern is present."""
    order: Int64[np.ndarray, "scenes points"]
    """Position each output point had before shuffling."""
    noise: Float[np.ndarray, "scenes points 2"] | None = None
    """Standard normal noise, in the order before shuffling."""


def draw(config: ConstellationDataConfig, rng: np.random.Generator, count: int) -> Draws:
    """Random numbers for `count` scenes."""
    patterns, points = len(config.patterns), sum(len(PATTERNS[p]) for p in config.patterns)
    return Draws(
        rotation=rng.random((count, patterns)),
        scale=rng.random((count, patterns)),
        translation=rng.random((count, patterns, 2)),
        kept=(rng.random((count, patterns)) < config.keep).astype(np.float64),
        order=rng.random((count, points)).argsort(1),
        noise=rng.standard_normal((count, points, 2)) if config.noise else None,
    )


def arrange(config: ConstellationDataConfig, draws: Draws) -> Scenes:
    """Scenes that follow from given random numbers; mapped by one range if so configured."""
    corners = [np.array(PATTERNS[p], np.float64) for p in config.patterns]
    owner = np.repeat(np.arange(len(corners)), [len(c) for c in corners])  # (points,)
    angle = np.deg2rad(config.max_rotation) * (2 * draws.rotation - 1)  # (scenes, patterns)
    low, high = config.scale
    scale = low + (high - low) * draws.scale
    shift = config.translation * draws.translation / scale[..., None]  # (scenes, patterns, 2)
    cos, sin = (scale * np.cos(angle))[:, owner], (scale * np.sin(angle))[:, owner]
    x, y = np.concatenate(corners).T  # (points,) each
    points = np.stack([cos * x - sin * y, sin * x + cos * y], -1) + shift[:, owner]
    if draws.noise is not None:
        points = points + config.noise * draws.noise
    # Shuffle, so that a point's position in the set says nothing about its pattern.
    points = np.take_along_axis(points, draws.order[..., None], 1)  # (scenes, points, 2)
    pattern_id = owner[draws.order]  # (scenes, points)
    presence = np.take_along_axis(draws.kept, pattern_id, 1)
    made = torch.from_numpy(points)
    if config.global_range:
        made = global_range(made, made.flatten(0, 1))
    return Scenes(made.float(), torch.from_numpy(presence).float(), torch.from_numpy(pattern_id))


def generate(config: ConstellationDataConfig, seed: int, count: int) -> Scenes:
    """`count` scenes with ground truth; never those a training with the same seed sees."""
    # A range of few scenes would be narrower than the one training sees.
    drawn = max(count, SCENES_PER_RANGE) if config.global_range else count
    held_out = 1  # training keys have three numbers, this one has four
    return arrange(config, draw(config, stream(seed, SCENE, 0, held_out), drawn)).first(count)
