"""Rows of numbers for people: metrics, diagnostics, and whatever loggers are attached."""

import time
import warnings
from collections.abc import Mapping
from typing import Any

import lightning.pytorch as pl
import torch.distributed as dist
from lightning.pytorch.callbacks import Callback

from scae.distributed import world
from scae.training.diagnostics import FIRST_WARNING, diagnose, symptoms
from scae.training.module import TrainingModule
from scae.training.run_folder import RunFolder
from scae.training.tables import StepTable


class Recorder(Callback):
    """Writes `metrics.csv` and `diagnostics.csv` and feeds Lightning's loggers."""

    def __init__(self, folder: RunFolder) -> None:
        self.metrics = StepTable(folder.metrics)
        self.diagnostics = StepTable(folder.diagnostics)
        self.latest: dict[str, float] = {}
        self._warned: set[str] = set()
        self._silenced: set[int] = set()
        self._ticked = 0.0
        self._window = (0.0, 0)

    def begin(self, module: TrainingModule) -> None:
        """Start the clock: a monotonic one, since the system's can be set back."""
        self._ticked = time.monotonic()
        self._window = self._ticked, module.step

    def tick(self, module: TrainingModule) -> float:
        """Add the time since the last tick to the training's seconds; returns the clock."""
        now = time.monotonic()
        module.seconds += now - self._ticked
        self._ticked = now
        return now

    def rewind(self, step: int) -> None:
        """Forget rows of steps that will be done again."""
        self.metrics.resume(step)
        self.diagnostics.resume(step)

    def sync(self) -> None:
        """Bring all rows to the disk."""
        self.metrics.sync()
        self.diagnostics.sync()

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *_: Any) -> None:
        """Record the step that has just been done, if it is time to."""
        module: TrainingModule = pl_module
        config, step = module.experiment.training, module.step
        last = step == config.steps
        if step == 1 or last or step % config.log_every == 0:
            self._record_metrics(trainer, module)
        if last or step % config.diagnose_every == 0:
            self._record_diagnosis(trainer, module)

    def _record_metrics(self, trainer: pl.Trainer, module: TrainingModule) -> None:
        losses = module.losses
        if world() > 1:
            losses = losses.clone()
            dist.all_reduce(losses)
            losses /= world()
        if not trainer.is_global_zero:
            return
        now, (then, step) = self.tick(module), self._window
        self._window = now, module.step
        examples = (module.step - step) * module.experiment.training.batch
        self.latest = dict(zip(module.loss_names, losses.tolist(), strict=True))
        row: dict[str, float | int] = {
            "step": module.step,
            "seconds": module.seconds,
            "images_per_second": examples / max(now - then, 1e-9),
            "lr": module.learning_rate,
            **self.latest,
            "gradient_norm": float(module.gradient_norm),
            "skipped_steps": module.guard.skipped,
            "rollbacks": module.guard.rollbacks,
        }
        self.metrics.append(row)
        self._log(trainer, {k: v for k, v in row.items() if k != "step"}, module.step)

    def _record_diagnosis(self, trainer: pl.Trainer, module: TrainingModule) -> None:
        if not trainer.is_global_zero:
            return
        training = module.experiment.training
        batch = module.source.batch(module.step, training.batch)
        diagnosis = diagnose(module.model, tuple(x.to(module.device) for x in batch))
        row = diagnosis.row()
        self.diagnostics.append({"step": module.step, **row})
        self._log(trainer, {f"diagnostics/{k}": v for k, v in row.items()}, module.step)
        if module.step < FIRST_WARNING:
            return
        for kind, text in symptoms(diagnosis).items():
            if kind not in self._warned:
                self._warned.add(kind)
                warnings.warn(f"Step {module.step}: {text}.", stacklevel=2)

    def _log(self, trainer: pl.Trainer, values: Mapping[str, float | int], step: int) -> None:
        for index, logger in enumerate(trainer.loggers):
            if index in self._silenced:
                continue
            try:
                logger.log_metrics(dict(values), step=step)
            except OSError as error:
                # A logger's full disk must not end a training whose own files may be elsewhere.
                self._silenced.add(index)
                warnings.warn(f"{type(logger).__name__} stopped logging ({error}).", stacklevel=2)
