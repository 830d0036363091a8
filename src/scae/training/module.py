"""The training step of every model, and its batches by step."""

import hashlib
import warnings
from collections.abc import Iterator
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim import Optimizer

from scae.config import Experiment
from scae.data import Batches
from scae.distributed import rank, world
from scae.errors import ScaeError
from scae.losses import loss_terms
from scae.models import CapsuleModel, StackedCapsuleAutoencoder
from scae.schedules import loss_weights_at, min_scale_at, posterior_factor_at
from scae.training.optimizers import build_optimizer, build_schedule


class StepLoader:
    """This process's share of the batches of steps `start` to `steps`.

    The length is that of the whole training, as Lightning counts it after resuming.
    """

    def __init__(self, batches: Batches, size: int, start: int, steps: int) -> None:
        self.batches, self.size, self.start, self.steps = batches, size, start, steps

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        for step in range(self.start, self.steps):
            yield self.batches.batch(step, self.size, rank(), world())


class StepData(pl.LightningDataModule):
    """Batches from the step that training starts or resumes at."""

    def __init__(self, batches: Batches, size: int, steps: int) -> None:
        super().__init__()
        self.batches, self.size, self.steps = batches, size, steps

    def train_dataloader(self) -> StepLoader:
        """Without worker processes: batches come from memory."""
        assert self.trainer is not None
        return StepLoader(self.batches, self.size, self.trainer.global_step, self.steps)


def step_seed(seed: int, step: int) -> int:
    """Seed of everything random in one step, so that resuming needs no generator state."""
    digest = hashlib.blake2b(f"{seed} {step}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


class CapsuleTraining(pl.LightningModule):
    """A model and its losses; step `n` depends on the weights, the seed and `n` alone.

    A step whose loss or gradient is not finite changes nothing: not the weights, not the
    optimiser, not the averaged weights.
    """

    def __init__(self, model: CapsuleModel, experiment: Experiment) -> None:
        super().__init__()
        self.model, self.experiment = model, experiment
        self.skipped_steps = 0
        self.nonfinite_in_a_row = 0
        self._loss = torch.zeros(())
        compiled = experiment.training.compile
        self._loss_terms = torch.compile(loss_terms) if compiled else loss_terms

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """The optimiser, and its learning rates as a function of the step."""
        config = self.experiment
        optimizer = build_optimizer(self.model, config.optimizer, config.training.batch)
        schedule = build_schedule(optimizer, config.optimizer, config.training.steps)
        every_step = {"scheduler": schedule, "interval": "step", "name": "lr"}
        return {"optimizer": optimizer, "lr_scheduler": every_step}  # type: ignore[typeddict-item]

    def training_step(self, batch: tuple[Tensor, ...], batch_idx: int) -> Tensor:
        """The loss of a batch, with noise, loss weights and vote scale of the present step."""
        config, step = self.experiment, self.global_step
        progress = step / config.training.steps
        self._seed(step_seed(config.training.seed, step))
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
        return loss

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the gradient's global norm, or drop a gradient that is not finite."""
        norm = get_total_norm(p.grad for p in self.model.parameters() if p.grad is not None)
        finite = bool(torch.isfinite(norm) & torch.isfinite(self._loss))
        if self.trainer.strategy.reduce_boolean_decision(finite, all=True):
            self.nonfinite_in_a_row = 0
            if gradient_clip_val is not None:
                clip_grads_with_norm_(self.model.parameters(), gradient_clip_val, norm)
        else:
            # Optimisers leave parameters without gradient, and their own state, alone.
            optimizer.zero_grad(set_to_none=True)
            self.skipped_steps += 1
            self.nonfinite_in_a_row += 1
            if self.skipped_steps == 1 and self.trainer.is_global_zero:
                what = "gradient" if bool(torch.isfinite(self._loss)) else "loss"
                warnings.warn(
                    f"Step {self.global_step}: the {what} is not finite, so the step is skipped; "
                    "further ones are counted as skipped_steps.",
                    stacklevel=1,
                )
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
        checkpoint["skipped_steps"] = self.skipped_steps, self.nonfinite_in_a_row

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take over the counters."""
        self.skipped_steps, self.nonfinite_in_a_row = checkpoint["skipped_steps"]

    def _seed(self, seed: int) -> None:
        # torch.manual_seed formats a stack trace for each kind of device that is absent.
        on_cpu = self.device.type == "cpu"
        (torch.default_generator.manual_seed if on_cpu else torch.manual_seed)(seed)

    @property
    def _is_log_step(self) -> bool:
        return (self.global_step + 1) % self.experiment.training.log_every == 0

    def _set_min_scale(self, progress: float) -> float | None:
        if not isinstance(self.model, StackedCapsuleAutoencoder):
            return None
        scale = min_scale_at(self.experiment.schedule, self.model.config.min_scale, progress)
        self.model.object_decoder.min_scale.fill_(scale)
        return scale
