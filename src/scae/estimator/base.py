"""What both estimators share: training by `scae.train`, and what the model says of examples."""

import copy
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from scae.api import wrap
from scae.api.loading import WEIGHTS
from scae.config import Experiment
from scae.weights_file import save_weights


@dataclass(eq=False, repr=False, kw_only=True)
class Estimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Training, presences, likelihood and storage; subclasses read X."""

    steps: int | None = None
    random_state: Any = None
    device: str = "auto"
    verbose: int = 0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def transform(self, X: Any) -> Float[np.ndarray, "examples objects"]:
        """Prior presence of every object in each example, from 0 to 1."""
        found: np.ndarray = self._exact.presences(*self._read(X)).prior.numpy()
        return found

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of an example, in nats; `y` is ignored.

        Higher is better; of images comparable between models of the same image size and pixel
        sigma. It says how well examples are explained, which need not rank models by their
        clusters.
        """
        return float(self._exact.log_likelihood(*self._read(X)).mean())

    def save(self, folder: str | Path) -> None:
        """Write the trained model where `scae.load` and `scae predict` find it."""
        check_is_fitted(self)
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        save_weights(self.model_.model, self.experiment_, path / WEIGHTS)

    @property
    def _n_features_out(self) -> int:
        return int(self.model_.model.config.objects)

    @property
    def _exact(self) -> Any:
        """`model_` in double precision: its answers do not depend on the size of a batch."""
        check_is_fitted(self)
        return replace(self.model_, model=copy.deepcopy(self.model_.model).double())

    def _read(self, X: Any, reset: bool = False) -> tuple[Tensor, ...]:
        """Examples as the model takes them; with `reset`, what `fit` learns of X is kept."""
        raise NotImplementedError

    def _configure(self, chosen: Any, count: int, **model: Any) -> Any:
        """An experiment with our parameters, for `count` examples; None keeps its own choice."""
        from scae.presets import recipe

        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        own, optimizer = chosen.training, chosen.optimizer
        steps = self.steps or own.steps
        if steps < own.steps:
            optimizer = recipe.short(optimizer, steps)
        training = replace(own, seed=seed, steps=steps, batch=min(own.batch, count))
        given = {name: value for name, value in model.items() if value is not None}
        return replace(
            chosen,
            model=replace(chosen.model, **given),
            data=replace(chosen.data, name="X"),
            optimizer=optimizer,
            training=training,
        )

    def _train(self, experiment: Experiment, batches: Any) -> None:
        """Set `model_`, `experiment_` and `n_iter_`."""
        from scae.training import train  # Lightning: slow to import

        device = self.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        with tempfile.TemporaryDirectory() as folder:
            run = train(
                experiment,
                Path(folder) / "run",
                batches=batches,
                accelerator="gpu" if device.startswith("cuda") else device,
                loggers=[],
                progress=bool(self.verbose),
            )
        self.experiment_, self.n_iter_ = experiment, experiment.training.steps
        self.model_: Any = wrap(run.model, experiment, device)
