"""Random numbers of a step, which depend on the training's seed and the step alone."""

import hashlib


def step_seed(seed: int, step: int, *purpose: str) -> int:
    """Seed of everything random in one step, so that resuming needs no generator state."""
    key = " ".join([str(seed), str(step), *purpose])
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1
