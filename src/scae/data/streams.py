"""Random numbers by key, so that a batch depends on (seed, step) and on nothing before it."""

import zlib

import numpy as np

# What random numbers are for; keeps the streams of one seed apart.
ORDER, SHIFT, SCENE, AFFINE = range(4)


def stream(*key: int | str) -> np.random.Generator:
    """An independent generator for a key such as (seed, purpose, step or split)."""
    return np.random.default_rng([zlib.crc32(k.encode()) if isinstance(k, str) else k for k in key])
