"""The authors' numbers, and comparisons relative to the largest magnitude of each tensor.

``SCAE_GOLDEN`` names another folder with the same files.
"""

import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

OUTPUT = 1e-5
GRADIENT = 1e-4


def folder() -> Path:
    """Where the golden files are."""
    return Path(os.environ.get("SCAE_GOLDEN") or Path(__file__).parent / "golden")


def load(name: str) -> dict[str, np.ndarray]:
    """All arrays of ``NAME.npz``; ``meta`` is a JSON string."""
    with np.load(folder() / f"{name}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def close(
    ours: Tensor | np.ndarray,
    golden: np.ndarray,
    tolerance: float = OUTPUT,
    scale: float = 0.0,
    what: str = "",
) -> None:
    """|ours - golden| <= tolerance * largest magnitude of golden.

    `scale` is a lower bound of that magnitude for tensors that are pure rounding error,
    such as gradients of a bias that softmax cancels.
    """
    ours = ours.detach().numpy() if isinstance(ours, Tensor) else np.asarray(ours)
    assert ours.shape == golden.shape, f"{what}: {ours.shape} instead of {golden.shape}"
    assert np.isfinite(ours).all(), f"{what}: not finite"
    magnitude = max(float(np.abs(golden).max(initial=0.0)), scale)
    error = float(np.abs(ours.astype(np.float64) - golden).max(initial=0.0))
    assert error <= tolerance * magnitude, f"{what}: off by {error:.3g} of {magnitude:.3g}"


def gradients_close(pairs: list[tuple[Tensor, np.ndarray]], tolerance: float = GRADIENT) -> None:
    """Gradients of all parameters, each relative to its own largest magnitude.

    Some gradients are zero in exact arithmetic (biases that softmax cancels), so a tensor is
    held to float32 rounding, a millionth, of the largest gradient of the whole file.
    """
    largest = max(float(np.abs(array).max(initial=0.0)) for _, array in pairs)
    for index, (parameter, array) in enumerate(pairs):
        gradient = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
        close(gradient, array, tolerance, 1e-2 * largest, f"gradient {index} {array.shape}")
