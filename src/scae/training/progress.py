"""A progress bar with the loss terms, images per second and the time left."""

import sys
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks import Callback
from tqdm.auto import tqdm

from scae.training.module import TrainingModule
from scae.training.recording import Recorder

_ALWAYS_SHOWN = ("loss", "image_ll", "part_ll")


class Progress(Callback):
    """Shown on a terminal or in a notebook; silent where output goes to a file."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._bar: Any = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Open the bar at the step the training starts from."""
        module: TrainingModule = pl_module
        if not trainer.is_global_zero:
            return
        training = module.experiment.training
        self._bar = tqdm(
            desc=module.experiment.name,
            total=training.steps * training.batch,
            initial=module.step * training.batch,
            unit=" images",
            unit_scale=True,
            dynamic_ncols=True,
            file=sys.stderr,
            disable=None,  # unless stderr is a terminal
        )

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *_: Any) -> None:
        """Move on; a roll-back moves the bar backwards."""
        if self._bar is None or self._bar.disable:
            return
        module: TrainingModule = pl_module
        self._bar.set_postfix(self._terms(), refresh=False)
        self._bar.update(module.step * module.experiment.training.batch - self._bar.n)

    def on_train_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Leave the last state of the bar on the screen."""
        self._close()

    def on_exception(self, trainer: pl.Trainer, pl_module: Any, exception: BaseException) -> None:
        """Leave the terminal in order."""
        self._close()

    def _terms(self) -> dict[str, str]:
        latest = self._recorder.latest
        shown = {n: v for n, v in latest.items() if n in _ALWAYS_SHOWN or v != 0}
        return {name: f"{value:.4g}" for name, value in shown.items()}

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
