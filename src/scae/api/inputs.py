"""Arrays from users: checked, brought into the model's shape, and answered in kind."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scae.api.results import SHARED
from scae.errors import ScaeError


@dataclasses.dataclass(frozen=True)
class Kind:
    """What the user handed in: numpy (None) or torch on some device."""

    device: torch.device | None

    @classmethod
    def of(cls, array: Any) -> "Kind":
        return cls(array.device if isinstance(array, Tensor) else None)

    def answer(self, value: Any) -> Any:
        """Tensors, also inside of records, as the user's kind of array."""
        if isinstance(value, Tensor):
            value = value.detach()
            return value.cpu().numpy() if self.device is None else value.to(self.device)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            return type(value)(**{f.name: self.answer(getattr(value, f.name)) for f in fields})
        return value


def as_tensor(array: Any, name: str) -> Tensor:
    """A tensor of numbers from a tensor, an array or anything numpy can read."""
    if isinstance(array, Tensor) and not array.is_complex():
        return array.detach()
    try:
        values = np.asarray(array)
        if values.dtype.kind not in "biuf":
            raise ValueError(f"it holds {values.dtype}")
        # A copy: torch refuses negative strides and warns about read-only arrays.
        return torch.from_numpy(np.array(values, order="C"))
    except (ValueError, TypeError) as error:
        raise ScaeError(
            f"{name} cannot be read as an array of numbers: {str(error)[:100]}."
        ) from None


def scene_batch(
    points: Any, presence: Any = None
) -> tuple[Float[Tensor, "batch points 2"], Float[Tensor, "batch points"]]:
    """Points in their own coordinates and their presences, 0 or 1; absent points become 0."""
    found = as_tensor(points, "`points`")
    found = found[None] if found.ndim == 2 else found
    if found.ndim != 3 or found.shape[-1] != 2:
        raise ScaeError(
            f"`points` has shape {tuple(found.shape)}; expected (scenes, points, 2) or (points, 2)."
        )
    if presence is None:
        present = torch.ones(found.shape[:2], device=found.device)
    else:
        present = as_tensor(presence, "`presence`").to(found.device).float()
        present = present[None] if present.ndim == 1 else present
    if present.shape != found.shape[:2] or not bool(((present == 0) | (present == 1)).all()):
        raise ScaeError(
            f"`presence` of shape {tuple(present.shape)} must hold a 0 or 1 for each point of "
            f"`points`, whose shape is {tuple(found.shape)}."
        )
    found = found.masked_fill((present == 0)[..., None], 0).float()
    if not bool(found.isfinite().all()):
        raise ScaeError(
            "`points` holds NaN or infinity; mark missing points by a 0 in `presence` instead."
        )
    return found, present


def pose_batch(pose: Any, like: Tensor, name: str = "`pose`") -> Tensor:
    """Edited poses in the shape of `like`: 2x3 or 3x3 matrices, with or without a batch."""
    given = as_tensor(pose, name).to(like)
    if given.ndim >= 2 and given.shape[-2:] == (3, 3):
        given = given[..., :2, :]
    given = expand(given, like, name)
    a, b, c, d = given[..., :2].flatten(-2).unbind(-1)
    if not bool(given.isfinite().all() & ((a * d - b * c).abs() > 1e-12).all()):
        raise ScaeError(f"{name} holds a matrix that is not finite or cannot be inverted.")
    return given


def presence_batch(presence: Any, like: Tensor) -> Tensor:
    """Edited presences in the shape of `like`, from 0 to 1."""
    given = expand(as_tensor(presence, "`presence`").to(like), like, "`presence`")
    if not bool(((given >= 0) & (given <= 1)).all()):
        raise ScaeError("`presence` holds values outside of 0 to 1.")
    return given


def expand(given: Tensor, like: Tensor, name: str) -> Tensor:
    """The tensor broadcast to the shape of another."""
    try:
        return given.expand_as(like)
    except RuntimeError:
        raise ScaeError(
            f"{name} has shape {tuple(given.shape)}; expected {tuple(like.shape)}, "
            "or the same without the batch."
        ) from None


def in_batches(function: Callable[..., Any], batch: int, *tensors: Tensor) -> Any:
    """Apply a function to slices of tensors and join its results, records included."""
    starts = range(0, max(1, len(tensors[0])), batch)
    results = [function(*(t[i : i + batch] for t in tensors)) for i in starts]
    return results[0] if len(results) == 1 else join(results)


def join(results: list[Any]) -> Any:
    """Concatenate tensors, or records of them field by field but for what batches share."""
    first = results[0]
    if isinstance(first, Tensor):
        return torch.cat(results)
    if first is None:
        return None
    joined = {}
    for field in dataclasses.fields(first):
        values = [getattr(result, field.name) for result in results]
        joined[field.name] = values[0] if field.metadata == SHARED else join(values)
    return type(first)(**joined)
