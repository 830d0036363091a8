"""What both kinds of model share: arrays from users are checked, and answered in kind."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scae.config import Experiment
from scae.data.images import as_tensor
from scae.errors import ScaeError
from scae.inference import BATCH, map_tensors, run
from scae.models import CapsuleModel

Array = np.ndarray | Tensor


@dataclass(frozen=True, eq=False)
class Loaded:
    """A trained model with the experiment that made it and its folder."""

    model: CapsuleModel
    """The torch module, for everything this interface leaves out."""
    experiment: Experiment
    folder: Path | None = None
    """Where its weights are; None for a model that only is in memory."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.experiment.name!r}, {self.folder or 'in memory'})"

    def _presences(self, *x: Tensor) -> "Presences":
        return Presences(**vars(self.model.object_presences(*x)))

    def _ask(self, function: Callable[..., Any], like: Any, *x: Tensor, size: int = BATCH) -> Any:
        """`run` a function of tensors; answers are of the kind of array that `like` is."""
        found = run(self.model, function, *x, size=size)
        if isinstance(like, Tensor):
            return map_tensors(lambda value: value[0].to(like.device), [found])
        return map_tensors(lambda value: value[0].cpu().numpy(), [found])


@dataclass(frozen=True)
class Presences:
    """How present each object is."""

    prior: Float[Array, "batch objects"]  # a_k max_m a_{k,m}, what it claims: clustered
    posterior: Float[Array, "batch objects"]  # how many parts (or points) it explains


def edited(value: Any, like: Tensor, name: str) -> Tensor:
    """An edited pose or presence in the shape of `like`; the batch axis may be missing."""
    given = as_tensor(value, f"`{name}`").to(like)
    if name == "pose" and given.ndim >= 2 and given.shape[-2:] == (3, 3):
        given = given[..., :2, :]
    try:
        given = given.expand_as(like)
    except RuntimeError:
        raise ScaeError(
            f"`{name}` has shape {tuple(given.shape)}; expected {tuple(like.shape)}, "
            "or the same without the batch."
        ) from None
    if name == "presence" and not bool(((given >= 0) & (given <= 1)).all()):
        raise ScaeError("`presence` holds values outside of 0 to 1.")
    if name == "pose" and not bool((torch.linalg.det(given[..., :2]).abs() > 1e-12).all()):
        raise ScaeError("`pose` holds a matrix that is not finite or cannot be inverted.")
    return given
