"""Training in memory: the steps of `scae.train` without run folder, checkpoints and logs."""

import copy
import sys
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from tqdm.auto import tqdm

from scae import models
from scae.config import Experiment
from scae.data.interface import Source
from scae.errors import ScaeError
from scae.models import CapsuleModel
from scae.schedules import loss_weights_at, min_scale_at
from scae.training.optimizers import build_optimizer, learning_rate_factor


def fit_in_memory(
    experiment: Experiment,
    source: Source,
    device: str = "cpu",
    start: dict[str, Tensor] | None = None,
    progress: bool = False,
) -> CapsuleModel:
    """The trained model, on `device`, in evaluation mode.

    `start` are weights to begin with instead of random ones. Always in 32 bits. A step whose
    loss or gradient is not finite is skipped; several in a row go back to the last good
    weights with half the learning rate, as in `scae.train`.
    """
    # Lightning comes with the training package; who only predicts does not wait for it.
    from scae.training.averaging import WeightAverage
    from scae.training.guards import Guard, Verdict
    from scae.training.step_seed import step_seed

    training, config = experiment.training, experiment.optimizer
    if training.steps < 1 or training.batch < 1:
        raise ScaeError(
            f"Training needs at least 1 step and 1 example per batch, not {training.steps} and "
            f"{training.batch}."
        )
    where = torch.device(device)
    with torch.random.fork_rng(devices=[where] if where.type == "cuda" else []):
        torch.manual_seed(training.seed)
        model = models.build(experiment.model)
        if start is not None:
            model.load_state_dict(start)
        model.to(where).train()
        optimizer = build_optimizer(model, config, training.batch)
        rates = [group["lr"] for group in optimizer.param_groups]
        average = WeightAverage(model, config.average) if config.average is not None else None
        guard, good = Guard.of(training), _state(model, optimizer, average)
        bar = tqdm(total=training.steps, disable=not progress, unit=" steps", file=sys.stderr)
        step = 0
        while step < training.steps:
            if step % training.checkpoint_every == 0 and guard.in_a_row == 0:
                good, good_step = _state(model, optimizer, average), step
            batch = [x.to(where) for x in source.batch(step, training.batch)]
            torch.manual_seed(step_seed(training.seed, step))
            factor = learning_rate_factor(config, step, training.steps) * guard.lr_factor
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * factor
            optimizer.zero_grad(set_to_none=True)
            weights = loss_weights_at(experiment.loss, experiment.schedule, step / training.steps)
            if isinstance(model, models.StackedCapsuleAutoencoder):
                floor = min_scale_at(
                    experiment.schedule, model.config.min_scale, step / training.steps
                )
                model.object_decoder.min_scale.fill_(floor)
            loss = model.loss_terms(*batch).total(weights)
            loss.backward()
            norm = get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
            verdict = guard.judge(bool(torch.isfinite(loss) & torch.isfinite(norm)))
            if verdict is Verdict.UPDATE:
                if config.clip is not None:
                    clip_grads_with_norm_(model.parameters(), config.clip, norm)
                optimizer.step()
                if average is not None:
                    average.update()
            step += 1
            if verdict is Verdict.ROLL_BACK:
                guard.roll_back(step, "the loss or its gradient was not finite")
                _restore(good, model, optimizer, average)
                step = good_step
            bar.update(step - bar.n)
            bar.set_postfix(loss=f"{loss.item():.4g}", refresh=False)
        bar.close()
    if average is not None:
        model.load_state_dict(model.state_dict() | average.weights)
    return model.eval()


def _state(model: CapsuleModel, optimizer: torch.optim.Optimizer, average: Any) -> Any:
    averaged = (average.weights, average.updates) if average is not None else None
    return copy.deepcopy((model.state_dict(), optimizer.state_dict(), averaged))


def _restore(
    state: Any, model: CapsuleModel, optimizer: torch.optim.Optimizer, average: Any
) -> None:
    weights, optimiser_state, averaged = copy.deepcopy(state)
    model.load_state_dict(weights)
    optimizer.load_state_dict(optimiser_state)
    if average is not None:
        average.load(*averaged)
