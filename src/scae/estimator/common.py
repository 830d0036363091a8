"""What both estimators share: seeds, devices, errors of scikit-learn's kind, and storage."""

import contextlib
import functools
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from scae import files
from scae.api import Capsules, load
from scae.config import Experiment
from scae.errors import ScaeError
from scae.weights_file import save_weights

WEIGHTS, RECORD = "weights.safetensors", "estimator.json"

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Storage")


class InvalidInputError(ScaeError, ValueError):
    """A `ScaeError` that scikit-learn's tools also know, as the ValueError they expect."""


@contextlib.contextmanager
def value_errors() -> Iterator[None]:
    """Inside, every `ScaeError` is also a ValueError."""
    try:
        yield
    except ScaeError as error:
        raise InvalidInputError(str(error)) from None


def speaks_sklearn(method: Callable[P, R]) -> Callable[P, R]:
    """A method whose errors are ValueErrors."""

    @functools.wraps(method)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with value_errors():
            return method(*args, **kwargs)

    return wrapped


def draw_seed(random_state: Any) -> int:
    """A seed for weights, batches and noise, as scikit-learn reads `random_state`."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def choose_device(device: str) -> str:
    """`auto` is the first GPU, or else the CPU."""
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


class Storage:
    """`save` and `load` of a fitted estimator: safetensors and JSON, nothing that is executed.

    The folder also is one that `scae.load` reads. Only what `fit` learned and the parameters
    that JSON can hold are kept: `labels_` is not, and a `random_state` object becomes None.
    """

    device: str
    model_: Any
    experiment_: Experiment
    n_iter_: int
    _LEARNED: tuple[str, ...] = ()

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator into a folder, which is made if needed."""
        check_is_fitted(self)
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        save_weights(self.model_.model, self.experiment_, path / WEIGHTS)
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        record = {
            "estimator": type(self).__name__,
            "parameters": {k: _plain(v) for k, v in params.items() if _is_plain(v)},
            "custom_experiment": params.get("experiment") is not None,
            "learned": {k: _plain(getattr(self, k)) for k in self._LEARNED if hasattr(self, k)},
        }
        files.write_json(path / RECORD, record)

    @classmethod
    def load(cls: type[S], folder: str | Path) -> S:
        """The fitted estimator that `save` wrote."""
        path = Path(folder) / RECORD
        try:
            record = json.loads(path.read_text())
            if record["estimator"] != cls.__name__:
                raise ScaeError(f"{path} was written by {record['estimator']}, not {cls.__name__}.")
            known = inspect.signature(cls).parameters
            estimator = cls(**{k: v for k, v in record["parameters"].items() if k in known})
            found = {name: record["learned"].get(name) for name in cls._LEARNED}
            learned = {name: _array(value) for name, value in found.items() if value is not None}
        except OSError as error:
            raise ScaeError(f"{path} cannot be read ({error.strerror}).") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ScaeError(f"{path} is not what {cls.__name__}.save writes ({error}).") from None
        model: Capsules = load(Path(folder) / WEIGHTS, choose_device(estimator.device))
        estimator.model_, estimator.experiment_ = model, model.experiment
        if record.get("custom_experiment"):
            estimator.set_params(experiment=model.experiment)  # type: ignore[attr-defined]
        for name, value in learned.items():
            setattr(estimator, name, value)
        return estimator


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str | np.integer | np.floating)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": str(value.dtype)}
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, tuple) else value


def _array(value: Any) -> Any:
    if isinstance(value, dict):
        return np.array(value["array"], dtype=value["dtype"])
    return tuple(value) if isinstance(value, list) else value
