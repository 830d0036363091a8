"""What both estimators share: training by `scae.train`, and storage."""

import copy
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from scae import config, files
from scae.api import load, wrap
from scae.api.loading import WEIGHTS
from scae.config import ConstellationExperiment, Experiment, ImageExperiment, TrainingConfig
from scae.errors import ScaeError
from scae.weights_file import save_weights

RECORD = "estimator.json"

S = TypeVar("S", bound="Estimator")


class Estimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Training, and `save` and `load` as safetensors and JSON.

    A saved folder also is one that `scae.load` and `scae predict` read. Only what `fit` learned
    and the parameters that JSON can hold are kept: `labels_` is not, and a `random_state`
    object becomes None.
    """

    model_: Any
    experiment_: Experiment
    _learned: tuple[str, ...] = ()

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

    def _training(self, chosen: TrainingConfig, count: int) -> TrainingConfig:
        """The training of an experiment with our parameters, for `count` examples."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        steps, batch = self.steps or chosen.steps, self.batch_size or chosen.batch
        return replace(chosen, seed=seed, steps=steps, batch=min(batch, count))

    def _train(self, experiment: Experiment, batches: Any) -> None:
        """Set `model_` and `experiment_`."""
        from scae.training import train  # Lightning: slow to import

        with tempfile.TemporaryDirectory() as folder:
            run = train(
                experiment,
                Path(folder) / "run",
                batches=batches,
                accelerator="gpu" if self._device.startswith("cuda") else self._device,
                loggers=[],
                progress=bool(self.verbose),
            )
        self.experiment_, self.n_iter_ = experiment, experiment.training.steps
        self.model_ = wrap(run.model, experiment, self._device)

    @property
    def _exact(self) -> Any:
        """`model_` in double precision: its answers do not depend on the size of a batch."""
        check_is_fitted(self)
        return replace(self.model_, model=copy.deepcopy(self.model_.model).double())

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator into a folder, which is made if needed."""
        check_is_fitted(self)
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        save_weights(self.model_.model, self.experiment_, path / WEIGHTS)
        record = {
            "estimator": type(self).__name__,
            "parameters": self.get_params(deep=False),
            "learned": {name: getattr(self, name) for name in self._learned if hasattr(self, name)},
        }
        files.write_text(path / RECORD, json.dumps(record, indent=2, default=_plain))

    @classmethod
    def load(cls: type[S], folder: str | Path) -> S:
        """The fitted estimator that `save` wrote."""
        path = Path(folder) / RECORD
        try:
            record = json.loads(path.read_text())
            parameters, learned = dict(record["parameters"]), dict(record["learned"])
            if parameters.get("experiment"):
                text = json.dumps(parameters["experiment"])
                parameters["experiment"] = config.from_json(text, str(path))
            estimator = cls(**parameters)
            right = record["estimator"] == cls.__name__ and learned.keys() <= set(cls._learned)
        except OSError as error:
            raise ScaeError(f"{path} cannot be read ({error.strerror}).") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            right = False
        if not right:
            raise ScaeError(f"{path} is not what {cls.__name__}.save writes.")
        for name, value in learned.items():
            setattr(estimator, name, tuple(value) if isinstance(value, list) else value)
        estimator.model_ = load(Path(folder) / WEIGHTS, estimator._device)
        estimator.experiment_ = estimator.model_.experiment
        return estimator


def _plain(value: Any) -> Any:
    """What JSON can hold of a parameter; None of anything else."""
    if isinstance(value, ImageExperiment | ConstellationExperiment):
        return config.to_json(value)
    return value.item() if isinstance(value, np.generic) else None
