"""Checkpoints, roll-backs and orderly stops of a running training."""

import warnings
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks import Callback

from scae.training.checkpoints import Checkpoint, CheckpointStore
from scae.training.guards import Verdict
from scae.training.module import TrainingModule
from scae.training.recording import Recorder
from scae.training.signals import StopRequest
from scae.training.state import capture, restore, weights_are_finite


class Keeper(Callback):
    """Decides after every step whether to save, to roll back or to stop.

    Only process 0 touches the folder; what it reads goes to the others over the network, so
    they need not see its disk.
    """

    def __init__(self, store: CheckpointStore, recorder: Recorder, stop: StopRequest) -> None:
        self.store = store
        self.recorder = recorder
        self.stop = stop
        self._saved = -1
        self._told_of_skip = False

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Continue from the newest checkpoint, or write the first one."""
        module: TrainingModule = pl_module
        checkpoint = self._latest(trainer)
        if checkpoint is not None:
            restore(module, checkpoint)
            self._saved = checkpoint.step
        self.recorder.begin(module)
        if trainer.is_global_zero:
            self._forget_after(module.step)
            if checkpoint is None:
                self._save(module)
        # Only now: Lightning has installed its own handlers, which would raise mid-step.
        self.stop.install()

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *_: Any) -> None:
        """Save, roll back or stop after a step."""
        module: TrainingModule = pl_module
        training = module.experiment.training
        last = module.step >= training.steps
        # In the middle of bad steps no state is saved to which a roll-back would lead.
        regular = module.step % training.checkpoint_every == 0 and module.guard.in_a_row == 0
        due = last or module.stopping or regular
        if module.verdict is Verdict.SKIP and trainer.is_global_zero:
            self._tell_of_skip(module)
        if module.verdict is Verdict.ROLL_BACK:
            self._roll_back(trainer, module, module.cause())
        elif due and not weights_are_finite(module):
            self._roll_back(trainer, module, "the weights were not finite after an update")
        elif due and trainer.is_global_zero:
            self._save(module)
        if module.step >= training.steps or module.stopping:
            trainer.should_stop = True

    def on_train_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Save what a stop between two steps left unsaved, and hand the signals back."""
        module: TrainingModule = pl_module
        if module.stopping and trainer.is_global_zero:
            self._save(module)
        self.stop.remove()

    def on_exception(self, trainer: pl.Trainer, pl_module: Any, exception: BaseException) -> None:
        """Hand the signals back."""
        self.stop.remove()

    def _save(self, module: TrainingModule) -> None:
        if module.step == self._saved:
            return
        self.recorder.tick(module)
        self.recorder.sync()
        if self.store.save(capture(module)):
            self._saved = module.step

    def _tell_of_skip(self, module: TrainingModule) -> None:
        if not self._told_of_skip:
            self._told_of_skip = True
            warnings.warn(
                f"Step {module.step}: {module.cause()}; the step was skipped. Further skipped "
                "steps are counted in metrics.csv.",
                stacklevel=2,
            )

    def _roll_back(self, trainer: pl.Trainer, module: TrainingModule, cause: str) -> None:
        step = module.step
        self.recorder.tick(module)
        module.guard.roll_back(step, cause)
        checkpoint = self._latest(trainer)
        if checkpoint is None:
            module.guard.rollbacks = module.guard.max_rollbacks
            module.guard.roll_back(step, f"{cause} and no checkpoint is left to return to")
            return
        restore(module, checkpoint, rolling_back=True)
        self._saved = checkpoint.step
        self.recorder.begin(module)
        if trainer.is_global_zero:
            self._forget_after(checkpoint.step)
            warnings.warn(
                f"Step {step}: {cause}; rolled back to step {checkpoint.step} with "
                f"{module.guard.lr_factor:g} of the learning rate (roll-back "
                f"{module.guard.rollbacks} of {module.guard.max_rollbacks}).",
                stacklevel=2,
            )

    def _latest(self, trainer: pl.Trainer) -> Checkpoint | None:
        checkpoint = self.store.latest() if trainer.is_global_zero else None
        return trainer.strategy.broadcast(checkpoint) if trainer.world_size > 1 else checkpoint

    def _forget_after(self, step: int) -> None:
        self.recorder.rewind(step)
        self.store.discard_after(step)
