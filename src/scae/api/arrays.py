"""Arrays from users: checked, brought into the model's shape, and answered in kind."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from scae.api.results import SHARED
from scae.errors import ScaeError
from scae.evaluation import evaluation_mode
from scae.evaluation.inference import device_of


def ask(model: nn.Module, function: Callable[..., Any], size: int, like: Any, *x: Tensor) -> Any:
    """What a function of tensors finds, `size` examples at a time, in the kind of array of `like`.

    Its results are tensors or records of them.
    """
    device = device_of(model)
    with evaluation_mode(model):
        batches = zip(*(tensor.split(size) for tensor in x), strict=True)
        found = [function(*(tensor.to(device) for tensor in batch)) for batch in batches]
    joined = found[0] if len(found) == 1 else _map(torch.cat, found)
    return answer(joined, like)


def answer(value: Any, like: Any) -> Any:
    """Tensors, also inside of records, as numpy arrays or tensors on the device of `like`."""
    if isinstance(like, Tensor):
        return _map(lambda x: x[0].detach().to(like.device), [value])
    return _map(lambda x: x[0].detach().cpu().numpy(), [value])


def _map(function: Callable[[list[Tensor]], Any], values: list[Any]) -> Any:
    """Apply a function to the tensors of one field of all records, field by field."""
    first = values[0]
    if first is None or isinstance(first, Tensor):
        return None if first is None else function(values)
    mapped = {}
    for field in dataclasses.fields(first):
        items = [getattr(value, field.name) for value in values]
        mapped[field.name] = _map(function, items[:1] if field.metadata == SHARED else items)
    return type(first)(**mapped)


def as_tensor(array: Any, name: str = "the explanation") -> Tensor:
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
    present = torch.ones(found.shape[:2], device=found.device)
    if presence is not None:
        present = as_tensor(presence, "`presence`").to(present)
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


def pose_batch(pose: Any, like: Tensor) -> Tensor:
    """Edited poses in the shape of `like`: 2x3 or 3x3 matrices, with or without a batch."""
    given = as_tensor(pose, "`pose`").to(like)
    if given.ndim >= 2 and given.shape[-2:] == (3, 3):
        given = given[..., :2, :]
    given = _expand(given, like, "`pose`")
    a, b, c, d = given[..., :2].flatten(-2).unbind(-1)
    if not bool(given.isfinite().all() & ((a * d - b * c).abs() > 1e-12).all()):
        raise ScaeError("`pose` holds a matrix that is not finite or cannot be inverted.")
    return given


def presence_batch(presence: Any, like: Tensor) -> Tensor:
    """Edited presences in the shape of `like`, from 0 to 1."""
    given = _expand(as_tensor(presence, "`presence`").to(like), like, "`presence`")
    if not bool(((given >= 0) & (given <= 1)).all()):
        raise ScaeError("`presence` holds values outside of 0 to 1.")
    return given


def _expand(given: Tensor, like: Tensor, name: str) -> Tensor:
    try:
        return given.expand_as(like)
    except RuntimeError:
        raise ScaeError(
            f"{name} has shape {tuple(given.shape)}; expected {tuple(like.shape)}, "
            "or the same without the batch."
        ) from None
