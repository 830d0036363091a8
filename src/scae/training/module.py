"""One training step: a pure function of the weights, the optimiser, the seed and the step."""

import contextlib
from contextlib import AbstractContextManager
from typing import Any

import lightning.pytorch as pl
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim import Optimizer

from scae.config import Experiment
from scae.data.interface import Source
from scae.distributed import rank, world
from scae.errors import ScaeError
from scae.models import CapsuleModel, StackedCapsuleAutoencoder
from scae.schedules import loss_weights_at, min_scale_at
from scae.training.averaging import WeightAverage
from scae.training.guards import Guard, Verdict
from scae.training.numbers import check_optimizer
from scae.training.optimizers import build_optimizer, learning_rate_factor
from scae.training.signals import StopRequest
from scae.training.step_seed import step_seed


class TrainingModule(pl.LightningModule):
    """Model, optimiser, guard and counters.

    Updates are made by hand rather than by Lightning, so that a step with a non-finite
    gradient can be judged before it touches the weights, and so that `step` also counts the
    steps that were skipped.
    """

    def __init__(
        self, model: CapsuleModel, experiment: Experiment, source: Source, stop: StopRequest
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.model = model
        self.experiment = experiment
        self.source = source
        self.stop = stop
        self.stopping = False
        self.step = 0
        self.seconds = 0.0
        self.guard = Guard.of(experiment.training)
        self.verdict = Verdict.UPDATE
        self.loss_names = ["loss"]
        self.losses = torch.zeros(1)
        self.gradient_norm = torch.zeros(())
        self.learning_rate = 0.0
        decay = experiment.optimizer.average
        self.average = WeightAverage(model, decay) if decay is not None else None
        self.scaler = torch.amp.GradScaler("cuda", enabled=False)
        self._precision = torch.float32
        terms = model.loss_terms
        self._loss_terms = torch.compile(terms) if experiment.training.compile else terms
        self._batch: tuple[int, tuple[Tensor, ...]] | None = None

    def configure_optimizers(self) -> Optimizer:
        """The optimiser; learning rates are set before every step, so it needs no scheduler."""
        config = self.experiment
        check_optimizer(config.optimizer)
        optimizer = build_optimizer(self.model, config.optimizer, config.training.batch)
        self._base_rates = [group["lr"] for group in optimizer.param_groups]
        return optimizer

    @property
    def optimizer(self) -> Optimizer:
        """The bare optimiser without Lightning's wrapper, which would count only updates."""
        optimizer = self.optimizers(use_pl_optimizer=False)
        assert isinstance(optimizer, Optimizer)
        return optimizer

    def on_fit_start(self) -> None:
        """Settle what depends on the device."""
        if self.average is not None:
            self.average.to(self.device)
        self._precision = _precision(self.experiment.training.precision, self.device)
        scaled = self._precision == torch.float16
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=scaled)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> int | None:
        """End the training (-1 to Lightning) when no step is left, or to stop before one."""
        return -1 if self.step >= self.experiment.training.steps else None

    def training_step(self, tick: int, index: int) -> None:
        """Compute loss and gradient of step `self.step` and, if they are finite, update."""
        config, step = self.experiment, self.step
        torch.manual_seed(step_seed(config.training.seed, step))
        optimizer = self.optimizer
        self._set_learning_rate(optimizer)
        optimizer.zero_grad(set_to_none=True)
        progress = step / config.training.steps
        weights = loss_weights_at(config.loss, config.schedule, progress)
        if isinstance(self.model, StackedCapsuleAutoencoder):
            floor = min_scale_at(config.schedule, self.model.config.min_scale, progress)
            self.model.object_decoder.min_scale.fill_(floor)
        with self._autocast():
            terms = self._loss_terms(*self._take_batch(step))
            loss = terms.total(weights)
        if not loss.requires_grad:
            raise ScaeError(
                "No term of the loss that depends on the weights has a weight above 0; set "
                "loss.image, loss.part or another loss weight."
            )
        self.manual_backward(self.scaler.scale(loss))
        self.scaler.unscale_(optimizer)
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        norm = get_total_norm(gradients)
        # The next batch is prepared while a GPU still works on this one.
        self._batch = None
        if step + 1 < config.training.steps:
            self._batch = step + 1, self._fetch(step + 1)
        loss_finite, finite = self._judge(loss.detach(), norm)
        overflow = loss_finite and self.scaler.is_enabled() and self.scaler.get_scale() > 1
        self.verdict = self.guard.judge(finite, overflow)
        if self.verdict is Verdict.UPDATE:
            if config.optimizer.clip is not None:
                clip_grads_with_norm_(self.model.parameters(), config.optimizer.clip, norm)
            self.scaler.step(optimizer)
            if self.average is not None:
                self.average.update()
        if self.scaler.is_enabled():
            self.scaler.update()
        named = {name: term.detach() for name, term in terms.named().items()}
        self.loss_names = ["loss", *named]
        self.losses = torch.stack([loss.detach(), *named.values()])
        self.gradient_norm = norm
        self.step = step + 1

    def cause(self) -> str:
        """Why the last step was bad, as far as can be told."""
        batch = self._fetch(self.step - 1)
        if not all(bool(torch.isfinite(x).all()) for x in batch):
            return f"the batch of step {self.step - 1} itself contains NaN or infinity"
        count = self.guard.in_a_row
        times = f"{count} times in a row" if count > 1 else "once"
        bad = [n for n, v in zip(self.loss_names, self.losses.tolist(), strict=True) if v - v != 0]
        if bad:
            return f"the loss was not finite {times} (not finite: {', '.join(bad)})"
        return f"the gradient was not finite {times}"

    def forget_batch(self) -> None:
        """Drop the batch prepared for the next step, after the step was changed."""
        self._batch = None

    def _take_batch(self, step: int) -> tuple[Tensor, ...]:
        if self._batch is not None and self._batch[0] == step:
            return self._batch[1]
        return self._fetch(step)

    def _fetch(self, step: int) -> tuple[Tensor, ...]:
        batch = self.source.batch(step, self.experiment.training.batch, rank(), world())
        if self.device.type == "cpu":
            return batch
        return tuple(x.pin_memory().to(self.device, non_blocking=True) for x in batch)

    def _set_learning_rate(self, optimizer: Optimizer) -> None:
        config = self.experiment
        factor = learning_rate_factor(config.optimizer, self.step, config.training.steps)
        factor *= self.guard.lr_factor
        for group, base in zip(optimizer.param_groups, self._base_rates, strict=True):
            group["lr"] = base * factor
        self.learning_rate = config.optimizer.lr * factor

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._precision == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self._precision)

    def _judge(self, loss: Tensor, norm: Tensor) -> tuple[bool, bool]:
        """Whether the loss, and loss and gradient, are finite on every process.

        The step's only wait for the device; it also settles whether any process was asked
        to stop, so that all stop at the same step.
        """
        stop = self.stop.signal is not None
        bad_loss = ~torch.isfinite(loss)
        bad = bad_loss | ~torch.isfinite(norm)
        if world() == 1:
            self.stopping = stop
            return not bool(bad_loss), not bool(bad)
        flags = torch.stack([bad_loss, bad, bad.new_full((), stop)]).to(torch.int32)
        dist.all_reduce(flags, dist.ReduceOp.MAX)
        loss_bad, any_bad, self.stopping = map(bool, flags.tolist())
        return not loss_bad, not any_bad


def _precision(name: str, device: torch.device) -> torch.dtype:
    if name == "auto":
        native = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
        return torch.bfloat16 if native else torch.float32
    if name == "16" and device.type == "cpu":
        raise ScaeError("training.precision 16 needs a GPU; use 32, bf16 or auto on a CPU.")
    return {"32": torch.float32, "bf16": torch.bfloat16, "16": torch.float16}[name]
