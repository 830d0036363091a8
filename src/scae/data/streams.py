"""Random numbers by key, so that a batch depends on (seed, step) and on nothing before it."""

import zlib

import numpy as np

from scae.errors import ScaeError

# What random numbers are for; keeps the streams of one seed apart.
ORDER, SHIFT, SCENE, AFFINE = range(4)


def stream(*key: int) -> np.random.Generator:
    """An independent random stream for a key such as (seed, purpose, step)."""
    if any(k < 0 for k in key):
        raise ScaeError(f"A seed must not be negative, got {min(key)}.")
    return np.random.default_rng(np.random.SeedSequence(key))


def split_key(split: str) -> int:
    """A number for the name of a split."""
    return zlib.crc32(split.encode())
