"""What both kinds of model share: arrays from users are checked, and answered in kind."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from scae.config import Experiment
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
