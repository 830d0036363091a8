"""What both estimators share: training, errors of scikit-learn's kind, and storage."""

import functools
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from scae import files
from scae.api import load, wrap
from scae.api.loading import WEIGHTS
from scae.config import Experiment, TrainingConfig
from scae.errors import ScaeError
from scae.weights_file import save_weights

RECORD = "estimator.json"

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Estimator")


class InvalidInputError(ScaeError, ValueError):
    """A `ScaeError` that scikit-learn's tools also know, as the ValueError they expect."""


def value_errors(method: Callable[P, R]) -> Callable[P, R]:
    """A method whose every `ScaeError` is also a ValueError."""

    @functools.wraps(method)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except ScaeError as error:
            raise InvalidInputError(str(error)) from None

    return wrapped


class Estimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Training by `scae.train`, and `save` and `load` as safetensors and JSON.

    A saved folder also is one that `scae.load` and `scae predict` read. Only what `fit` learned
    and the parameters that JSON can hold are kept: `labels_` is not, and a `random_state`
    object becomes None.
    """

    model_: Any
    experiment_: Experiment
    n_iter_: int
    _learned: tuple[str, ...] = ("n_iter_",)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.model_.model.config.objects)

    @property
    def _device(self) -> str:
        if self.device != "auto":
            return str(self.device)
        return "cuda" if torch.cuda.is_available() else "cpu"

    def _seed(self) -> int:
        """A seed for weights, batches and noise, as scikit-learn reads `random_state`."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _training(self, chosen: TrainingConfig, count: int, seed: int) -> TrainingConfig:
        """The training of an experiment with our parameters, for `count` examples."""
        steps, batch = self.steps or chosen.steps, self.batch_size or chosen.batch
        return replace(chosen, seed=seed, steps=steps, batch=min(batch, count))

    def _train(self, experiment: Experiment, batches: Any) -> None:
        """Set `model_`, `experiment_` and `n_iter_`."""
        from scae.training import train  # Lightning: slow to import

        start, done = None, 0
        if self.warm_start and hasattr(self, "model_"):
            if self.experiment_.model != experiment.model:
                raise ScaeError(
                    "warm_start needs the sizes and numbers of capsules of the last fit; set "
                    "warm_start=False to start anew."
                )
            start, done = self.model_.model.state_dict(), self.n_iter_
        with tempfile.TemporaryDirectory() as folder:
            run = train(
                experiment,
                Path(folder) / "run",
                batches=batches,
                accelerator="gpu" if self._device.startswith("cuda") else self._device,
                loggers=[],
                progress=bool(self.verbose),
                start=start,
            )
        self.experiment_ = experiment
        self.model_ = wrap(run.model, experiment, self._device)
        self.n_iter_ = done + experiment.training.steps

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator into a folder, which is made if needed."""
        check_is_fitted(self)
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        save_weights(self.model_.model, self.experiment_, path / WEIGHTS)
        params = self.get_params(deep=False)
        record = {
            "estimator": type(self).__name__,
            "parameters": {name: _plain(value) for name, value in params.items()},
            "custom_experiment": params["experiment"] is not None,
            "learned": {name: _plain(getattr(self, name)) for name in self._learned},
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
            estimator = cls(**record["parameters"])
            for name in cls._learned:
                value = record["learned"][name]
                setattr(estimator, name, tuple(value) if isinstance(value, list) else value)
            custom = bool(record["custom_experiment"])
        except OSError as error:
            raise ScaeError(f"{path} cannot be read ({error.strerror}).") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ScaeError(f"{path} is not what {cls.__name__}.save writes ({error}).") from None
        estimator.model_ = load(Path(folder) / WEIGHTS, estimator._device)
        estimator.experiment_ = estimator.model_.experiment
        if custom:
            estimator.set_params(experiment=estimator.experiment_)
        return estimator


def _plain(value: Any) -> Any:
    """What JSON can hold of a parameter; None of anything else."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str) else None
