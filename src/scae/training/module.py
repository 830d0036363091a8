"""The training step of every model: losses, schedules, and what is logged."""

import hashlib
import time
import warnings
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim import Optimizer

from scae.config import Experiment
from scae.errors import ScaeError
from scae.losses import loss_terms
from scae.models import CapsuleModel, StackedCapsuleAutoencoder
from scae.schedules import loss_weights_at, min_scale_at, posterior_factor_at
from scae.training.optimizers import build_optimizer, build_schedule

RECORD = "scae"
"""Key of our own values in a checkpoint."""


def step_seed(seed: int, step: int) -> int:
    """Seed of everything random in one step, so that resuming needs no generator state."""
    digest = hashlib.blake2b(f"{seed} {step}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


class CapsuleTraining(pl.LightningModule):
    """A model and its losses; step `n` depends on the weights, the seed and `n` alone.

    A step whose loss or gradient is not finite changes nothing: not the weights, not the
    optimiser, not the averaged weights.
    """

    def __init__(self, model: CapsuleModel, experiment: Experiment, fingerprint: str) -> None:
        super().__init__()
        self.model = model
        self.experiment = experiment
        self.fingerprint = fingerprint
        self.skipped_steps = 0
        self.nonfinite_in_a_row = 0
        self._loss = torch.zeros(())
        compiled = experiment.training.compile
        self._loss_terms = torch.compile(loss_terms) if compiled else loss_terms
        self._seconds_before = 0.0
        self._started: float | None = None
        self._logged = (0.0, 0)

    @property
    def seconds(self) -> float:
        """Time spent training, over all resumptions."""
        now = 0.0 if self._started is None else time.monotonic() - self._started
        return self._seconds_before + now

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """The optimiser, and its learning rates as a function of the step."""
        config = self.experiment
        optimizer = build_optimizer(self.model, config.optimizer, config.training.batch)
        schedule = build_schedule(optimizer, config.optimizer, config.training.steps)
        every_step = {"scheduler": schedule, "interval": "step", "name": "lr"}
        return {"optimizer": optimizer, "lr_scheduler": every_step}  # type: ignore[typeddict-item]

    def on_train_start(self) -> None:
        """Start the clock."""
        self._started = time.monotonic()
        self._logged = self._started, self.global_step

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        """The loss of a batch, with noise, loss weights and vote scale of the present step."""
        config, step = self.experiment, self.global_step
        progress = step / config.training.steps
        torch.manual_seed(step_seed(config.training.seed, step))
        min_scale = self._set_min_scale(progress)
        terms = self._loss_terms(self.model, *batch)
        loss = terms.total(loss_weights_at(config.loss, config.schedule, progress))
        if not loss.requires_grad:
            raise ScaeError(
                "No term of the loss that depends on the weights has a weight above 0; set "
                "loss.image, loss.part or another loss weight."
            )
        self._loss = loss.detach()
        if self._is_log_step:
            self.log("loss", self._loss, sync_dist=True)
            for name, term in terms.named().items():
                shown = name == "part_ll" or (name == "image_ll" and min_scale is not None)
                self.log(name, term.detach(), prog_bar=shown, sync_dist=True)
            self.log("posterior_factor", posterior_factor_at(config.schedule, progress))
            if min_scale is not None:
                self.log("min_scale", min_scale)
            self._log_speed()
        return loss

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the gradient's global norm, or drop a gradient that is not finite."""
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        norm = get_total_norm(gradients)
        finite = bool(torch.isfinite(norm) & torch.isfinite(self._loss))
        if self.trainer.strategy.reduce_boolean_decision(finite, all=True):
            self.nonfinite_in_a_row = 0
            if gradient_clip_val is not None:
                clip_grads_with_norm_(self.model.parameters(), gradient_clip_val, norm)
        else:
            # Optimisers leave parameters without gradient, and their own state, alone.
            optimizer.zero_grad(set_to_none=True)
            self._count_skipped_step()
        if self._is_log_step:
            self.log("gradient_norm", norm)
            self.log("skipped_steps", float(self.skipped_steps))

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add our counters; a checkpoint of weights that are not finite is never written."""
        if not all(bool(torch.isfinite(p).all()) for p in self.model.parameters()):
            raise ScaeError(
                f"Training stopped: the weights are not finite after step {self.global_step}. "
                "Lower optimizer.lr or set optimizer.clip; the checkpoints before it stay."
            )
        checkpoint[RECORD] = {
            "fingerprint": self.fingerprint,
            "seconds": self.seconds,
            "skipped_steps": self.skipped_steps,
            "nonfinite_in_a_row": self.nonfinite_in_a_row,
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take over the counters."""
        record = checkpoint[RECORD]
        self._seconds_before = record["seconds"]
        self.skipped_steps = record["skipped_steps"]
        self.nonfinite_in_a_row = record["nonfinite_in_a_row"]

    @property
    def _is_log_step(self) -> bool:
        return (self.global_step + 1) % self.experiment.training.log_every == 0

    def _set_min_scale(self, progress: float) -> float | None:
        if not isinstance(self.model, StackedCapsuleAutoencoder):
            return None
        scale = min_scale_at(self.experiment.schedule, self.model.config.min_scale, progress)
        self.model.object_decoder.min_scale.fill_(scale)
        return scale

    def _log_speed(self) -> None:
        now, (then, step) = time.monotonic(), self._logged
        self._logged = now, self.global_step
        examples = (self.global_step - step) * self.experiment.training.batch
        if examples:
            self.log("images_per_second", examples / max(now - then, 1e-9), prog_bar=True)

    def _count_skipped_step(self) -> None:
        self.skipped_steps += 1
        self.nonfinite_in_a_row += 1
        if self.skipped_steps == 1 and self.trainer.is_global_zero:
            what = "gradient" if bool(torch.isfinite(self._loss)) else "loss"
            warnings.warn(
                f"Step {self.global_step}: the {what} is not finite, so the step is skipped; "
                "further ones are counted as skipped_steps.",
                stacklevel=1,
            )
