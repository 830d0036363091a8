"""Reads the authors' numbers; ``SCAE_GOLDEN`` names another folder with the same files."""

import os
from pathlib import Path

import numpy as np


def folder() -> Path:
    """Where the golden files are."""
    return Path(os.environ.get("SCAE_GOLDEN") or Path(__file__).parent / "golden")


def load(name: str) -> dict[str, np.ndarray]:
    """All arrays of ``NAME.npz``; ``meta`` is a JSON string."""
    with np.load(folder() / f"{name}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file.files}
