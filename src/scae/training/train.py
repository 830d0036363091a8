"""Training from start to finish: the one function that everything else calls."""

import contextlib
import logging
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import lightning.pytorch as pl
import torch
import torch.distributed as dist
from lightning.pytorch.callbacks import Callback, LearningRateMonitor, ModelCheckpoint, Timer
from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger
from lightning.pytorch.strategies import DDPStrategy

from scae import models, weights_file
from scae.config import Experiment
from scae.data import Batches, training_batches
from scae.errors import ScaeError
from scae.kernels import keep_freed_memory
from scae.models import CapsuleModel, StackedCapsuleAutoencoder
from scae.training import run_folder
from scae.training.callbacks import (
    AtomicCheckpoints,
    AverageWeights,
    Diagnostics,
    ProgressBar,
    ProgressLines,
    SaveAndStop,
)
from scae.training.module import CapsuleTraining, StepData

# Longer than any compilation that one process may wait for another to end.
PROCESS_TIMEOUT = timedelta(minutes=60)


@dataclass(frozen=True)
class TrainedRun:
    """A finished training."""

    folder: Path
    experiment: Experiment
    model: CapsuleModel
    """On the CPU, in evaluation mode, with averaged weights if they were asked for."""
    steps: int
    skipped_steps: int
    seconds: float
    """Time spent training, over all resumptions."""


def train(
    experiment: Experiment,
    folder: Path | str,
    *,
    batches: Batches | None = None,
    data_dir: Path | str | None = None,
    resume: bool = False,
    devices: int = 1,
    nodes: int = 1,
    accelerator: str = "auto",
    loggers: Sequence[Logger] | None = None,
    progress: bool = True,
) -> TrainedRun:
    """Train an experiment's model and fill a run folder.

    With `resume`, continue from the newest readable checkpoint in `folder`: the weights are
    bit-identical to those of an uninterrupted run on the same machine. Ctrl-C and SIGTERM
    save first, then raise `KeyboardInterrupt` or `SystemExit` (code 143). `loggers` replaces
    TensorBoard; CSV files are always written. `progress` shows a bar on a terminal, elsewhere
    a line now and then.
    """
    training, path = experiment.training, Path(folder).absolute()
    if training.batch % (devices * nodes):
        raise ScaeError(
            f"training.batch is {training.batch}, which {devices * nodes} processes cannot "
            "share equally; choose a multiple of the number of processes."
        )
    if batches is None:
        batches = training_batches(experiment, data_dir)
    checkpoint = run_folder.open_run(path, experiment, batches.fingerprint, resume)
    keep_freed_memory()
    # The global generator is reseeded at every step; callers get theirs back.
    with torch.random.fork_rng(), _quiet_lightning():
        torch.manual_seed(training.seed)
        model = models.build(experiment.model)
        module = CapsuleTraining(model, experiment)
        stop, timer = SaveAndStop(path / run_folder.CHECKPOINTS), Timer()
        trainer = pl.Trainer(
            accelerator=accelerator,
            devices=devices,
            num_nodes=nodes,
            strategy=_strategy(devices * nodes),
            precision=training.precision,
            gradient_clip_val=experiment.optimizer.clip,
            max_steps=training.steps,
            log_every_n_steps=training.log_every,
            callbacks=[*_callbacks(experiment, stop, progress), timer],
            logger=_loggers(path, loggers),
            plugins=[AtomicCheckpoints(training.keep)],
            default_root_dir=path,
            enable_progress_bar=progress and sys.stdout.isatty(),
            enable_model_summary=False,
            use_distributed_sampler=False,
        )
        _fit(trainer, module, StepData(batches, training.batch, training.steps), checkpoint)
        if trainer.global_step < training.steps:
            _leave(stop, trainer.global_step)
        if isinstance(model, StackedCapsuleAutoencoder):
            model.object_decoder.min_scale.fill_(model.config.min_scale)
        model.cpu().eval()
        seconds = timer.time_elapsed()
        if trainer.is_global_zero:
            with run_folder.disk_problems(path):
                run_folder.finish_run(path, seconds)
                weights_file.save_weights(model, experiment, path / run_folder.WEIGHTS)
    return TrainedRun(path, experiment, model, trainer.global_step, module.skipped_steps, seconds)


def _strategy(world: int) -> str | DDPStrategy:
    if world == 1:
        return "auto"
    # Ablations leave some parameters without a gradient. It also keeps gradients in the same
    # buckets all the time, without which sums over many processes could differ after a resume.
    return DDPStrategy(find_unused_parameters=True, timeout=PROCESS_TIMEOUT)


def _callbacks(experiment: Experiment, stop: SaveAndStop, progress: bool) -> list[Callback]:
    decay = experiment.optimizer.average
    averaging: list[Callback] = [] if decay is None else [AverageWeights(decay)]
    bar = ProgressBar(refresh_rate=10, leave=True) if sys.stdout.isatty() else ProgressLines()
    shown: list[Callback] = [bar] if progress else []
    regular = ModelCheckpoint(
        dirpath=stop.checkpoints,
        filename="step{step:09d}",
        auto_insert_metric_name=False,
        every_n_train_steps=experiment.training.checkpoint_every,
        save_top_k=-1,  # AtomicCheckpoints removes the oldest
        enable_version_counter=False,
    )
    # The average first: whatever saves has to see it updated.
    return [*averaging, LearningRateMonitor("step"), Diagnostics(), *shown, stop, regular]


def _loggers(path: Path, given: Sequence[Logger] | None) -> list[Logger]:
    if given is None:
        tensorboard = find_spec("tensorboard") is not None
        given = [TensorBoardLogger(path, name="tensorboard", version="")] if tensorboard else []
    return [CSVLogger(path, name=run_folder.LOGS, flush_logs_every_n_steps=1), *given]


def _fit(
    trainer: pl.Trainer, module: CapsuleTraining, data: StepData, checkpoint: Path | None
) -> None:
    try:
        with run_folder.disk_problems(Path(trainer.default_root_dir)):
            # `weights_only`: nothing in a checkpoint is executed.
            trainer.fit(module, datamodule=data, ckpt_path=checkpoint, weights_only=True)
    except SystemExit:
        # Lightning's answer to a Ctrl-C outside a step.
        raise KeyboardInterrupt from None
    except RuntimeError as error:
        said = str(error).lower()
        lost = isinstance(error, dist.DistError) or "gloo" in said or "connection" in said
        if trainer.world_size > 1 and lost:
            raise ScaeError(
                f"Another process of this run was lost at step {trainer.global_step}, so all "
                "stop; start all processes again with --resume."
            ) from error
        raise


def _leave(stop: SaveAndStop, step: int) -> None:
    """Say how to go on, and leave as the signal asked."""
    name = "another process" if stop.received is None else signal.Signals(stop.received).name
    text = f"Stopped by {name} after step {step}; continue with --resume."
    print(text, file=sys.stderr, flush=True)
    if stop.received == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + signal.SIGTERM)


@contextlib.contextmanager
def _quiet_lightning() -> Iterator[None]:
    """No tips and device reports: what users need to know is said by us."""
    with warnings.catch_warnings(), contextlib.ExitStack() as undo:
        warnings.filterwarnings("ignore", module=r"lightning\.")
        for logger in (logging.getLogger(f"lightning.{part}") for part in ("pytorch", "fabric")):
            undo.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.ERROR)
        yield
