"""What Lightning's own callbacks lack: atomic checkpoints, orderly stops, diagnostics."""

import io
import os
import signal
import sys
import threading
import time
import warnings
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric.plugins.io import TorchCheckpointIO
from lightning.pytorch.callbacks import Callback, TQDMProgressBar, WeightAveraging
from torch import Tensor

from scae import files
from scae.diagnostics import diagnose, symptoms
from scae.errors import ScaeError
from scae.training.run_folder import checkpoint_path, checkpoint_paths

# Before this many steps capsules that do nothing are not a symptom yet.
MIN_WARNING_STEP = 1000
SECONDS_PER_LINE = 30.0
"""Time between progress lines where there is no terminal."""


class AtomicCheckpoints(TorchCheckpointIO):
    """Checkpoint files that are whole or not there; the newest `keep` of them stay.

    Lightning's own writer moves a file from the temporary folder, which may be on another
    disk, so that a kill could leave a part of it.
    """

    def __init__(self, keep: int) -> None:
        self.keep = keep

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None
    ) -> None:
        """Write a checkpoint, then remove the oldest."""
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        files.write_bytes(Path(path), buffer.getvalue())
        for old in checkpoint_paths(Path(path).parent)[: -self.keep]:
            old.unlink(missing_ok=True)


class AverageWeights(WeightAveraging):
    """w_avg <- d w_avg + (1 - d) w after every update, with d = min(decay, (1 + n) / (10 + n)).

    The decay is low at first, so that the random initial weights are forgotten early.
    """

    def __init__(self, decay: float) -> None:
        def average(averages: list[Tensor], weights: list[Tensor], count: Tensor | int) -> None:
            n = int(count)
            torch._foreach_lerp_(averages, weights, 1 - min(decay, (1 + n) / (10 + n)))

        super().__init__(use_buffers=False, multi_avg_fn=average)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Leave the average alone after a step that was skipped."""
        if pl_module.nonfinite_in_a_row == 0:
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Hand over the average also when a finished training was resumed."""
        self.on_train_end(trainer, pl_module)


class ProgressBar(TQDMProgressBar):
    """Lightning's bar without its numbers of epoch and version."""

    BAR_FORMAT = (
        "{percentage:3.0f} % {bar} {n_fmt}/{total_fmt}, {rate_noinv_fmt}{postfix}, {remaining} left"
    )

    def get_metrics(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule
    ) -> dict[str, int | str | float | dict[str, float]]:
        """Log-likelihoods and the number of objects in use, as last logged."""
        return {name: f"{float(value):.4g}" for name, value in trainer.progress_bar_metrics.items()}


class ProgressLines(Callback):
    """Without a terminal: a line on stderr now and then, so that a log file shows progress."""

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Steps and time count from here."""
        self._step, self._time = trainer.global_step, time.monotonic()

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """Step, rate, what the bar shows, and the time left at the rate since the last line."""
        step, steps, seconds = trainer.global_step, trainer.max_steps, time.monotonic() - self._time
        if seconds < SECONDS_PER_LINE or step == self._step or not trainer.is_global_zero:
            return
        rate = (step - self._step) / seconds
        left = timedelta(seconds=round((steps - step) / rate))
        shown = "".join(f"{k} {float(v):.4g}, " for k, v in trainer.progress_bar_metrics.items())
        line = f"step {step:,} of {steps:,}, {rate:.3g} steps/s, {shown}{left} left"
        print(line, file=sys.stderr, flush=True)
        self._step, self._time = step, time.monotonic()


class SaveAndStop(Callback):
    """Saves after the last step, and before stopping early.

    Training stops early after Ctrl-C, SIGTERM, SLURM's SIGUSR1, or too many steps in a row
    that were not finite. Signals wait for the end of the step, so that a checkpoint never holds
    half an update; a second Ctrl-C interrupts at once.
    """

    def __init__(self, checkpoints: Path) -> None:
        self.checkpoints = checkpoints
        self.received: int | None = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Listen. Lightning restores the handlers that were there before it."""
        if threading.current_thread() is threading.main_thread():
            slurm = [signal.SIGUSR1] if "SLURM_JOB_ID" in os.environ else []
            for number in (signal.SIGINT, signal.SIGTERM, *slurm):
                signal.signal(number, self._receive)

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *_: Any) -> None:
        """Stop if any process was asked to."""
        training, bad_steps = pl_module.experiment.training, pl_module.nonfinite_in_a_row
        failed = bad_steps >= training.max_nonfinite
        asked = trainer.strategy.reduce_boolean_decision(self.received is not None, all=False)
        if failed or asked or trainer.global_step == training.steps:
            trainer.save_checkpoint(checkpoint_path(self.checkpoints, trainer.global_step))
        if failed:
            raise ScaeError(
                f"Training stopped at step {trainer.global_step}: the loss or the gradient was "
                f"not finite {bad_steps} times in a row. Lower optimizer.lr, set optimizer.clip "
                f"or lengthen optimizer.warmup; the weights before are in {self.checkpoints}."
            )
        trainer.should_stop = trainer.should_stop or asked

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = number


class Diagnostics(Callback):
    """Logs how capsules are used, and warns once of each symptom of a collapse."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Diagnose the batch that has just been trained on, without noise."""
        training, step = pl_module.experiment.training, trainer.global_step
        due = step % training.diagnose_every == 0 or step == training.steps
        if not (due and trainer.is_global_zero):
            return
        diagnosis = diagnose(pl_module.model, batch)
        values = {f"diagnostics/{name}": value for name, value in diagnosis.items()}
        for logger in trainer.loggers:
            logger.log_metrics(values, step=step - 1)
        in_use = diagnosis["objects_in_use"]
        pl_module.log("objects", in_use, prog_bar=True, logger=False, rank_zero_only=True)
        if step < MIN_WARNING_STEP:
            return
        found = symptoms(diagnosis, pl_module.experiment.model, step / training.steps)
        for kind in found.keys() - self._warned:
            self._warned.add(kind)
            warnings.warn(f"Step {step}: {found[kind]}.", stacklevel=1)
