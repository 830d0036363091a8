"""Training from start to finish: the one function that the command line and estimators call."""

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
from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import Logger, TensorBoardLogger
from lightning.pytorch.strategies import DDPStrategy

from scae import models, weights_file
from scae.config import Experiment, TrainingConfig
from scae.data.interface import Source
from scae.errors import ScaeError
from scae.models import CapsuleModel
from scae.training.checkpoints import CheckpointStore
from scae.training.keeper import Keeper
from scae.training.module import TrainingModule
from scae.training.progress import Progress
from scae.training.recording import Recorder
from scae.training.run_folder import RunFolder
from scae.training.signals import StopRequest
from scae.training.state import final_weights

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
    rollbacks: int
    seconds: float
    """Time spent training, over all resumptions."""


def train(
    experiment: Experiment,
    source: Source,
    folder: Path | str,
    *,
    resume: bool = False,
    devices: int = 1,
    nodes: int = 1,
    accelerator: str = "auto",
    loggers: Sequence[Logger] | None = None,
    progress: bool = True,
    callbacks: Sequence[Callback] = (),
) -> TrainedRun:
    """Train an experiment's model on a source of batches and fill a run folder.

    With `resume`, continue from the newest whole checkpoint in `folder`; the weights are
    bit-identical to those of an uninterrupted run on the same machine. Ctrl-C and SIGTERM
    save first, then raise `KeyboardInterrupt` or `SystemExit` (code 143). `loggers` replaces
    TensorBoard by any Lightning loggers; `metrics.csv` is always written.
    """
    _check(experiment.training, devices * nodes)
    run = RunFolder(Path(folder).absolute())
    with contextlib.ExitStack() as stack:
        if _is_main_process():
            run.create()
            stack.enter_context(run.locked())
            _begin(run, experiment, resume)
        stack.enter_context(_quiet_lightning())
        # The global generator is reseeded at every step; callers get theirs back.
        stack.enter_context(torch.random.fork_rng())
        torch.manual_seed(experiment.training.seed)
        model = models.build(experiment.model)
        stop = StopRequest()
        module = TrainingModule(model, experiment, source, stop)
        recorder = Recorder(run)
        store = CheckpointStore(run.checkpoints, experiment.training.keep)
        own: list[Callback] = [recorder, Keeper(store, recorder, stop)]
        trainer = pl.Trainer(
            accelerator=accelerator,
            devices=devices,
            num_nodes=nodes,
            strategy=_strategy(devices * nodes),
            callbacks=[*own, *([Progress(recorder)] if progress else []), *callbacks],
            logger=list(loggers) if loggers is not None else _tensorboard(run, store),
            default_root_dir=run.path,
            max_epochs=1,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
        )
        _fit(trainer, module)
        if trainer.is_global_zero:
            _write_weights(module, run)
        model.load_state_dict(final_weights(module))
        model.cpu().eval()
    _leave_if_asked(stop, module, run)
    guard = module.guard
    return TrainedRun(
        run.path, experiment, model, module.step, guard.skipped, guard.rollbacks, module.seconds
    )


class _Ticks:
    """What Lightning iterates over; the module itself knows which batch comes next."""

    def __iter__(self) -> Iterator[int]:
        while True:
            yield 0


def _fit(trainer: pl.Trainer, module: TrainingModule) -> None:
    try:
        trainer.fit(module, _Ticks())
    except SystemExit:
        # Lightning's answer to Ctrl-C before our own handler is in place.
        raise KeyboardInterrupt from None
    except RuntimeError as error:
        if trainer.world_size > 1 and _is_lost_connection(error):
            raise ScaeError(
                f"Another process of this run was lost at step {module.step}, so all stop; the "
                "checkpoints are whole: start all processes again with --resume."
            ) from error
        raise


def _check(config: TrainingConfig, world: int) -> None:
    for name in ("steps", "batch", "log_every", "diagnose_every", "checkpoint_every", "keep"):
        if getattr(config, name) < 1:
            raise ScaeError(f"training.{name} is {getattr(config, name)}; give at least 1.")
    if world < 1 or config.batch % world:
        raise ScaeError(
            f"training.batch is {config.batch}, which {world} processes cannot share equally; "
            "choose a multiple of the number of processes."
        )


def _begin(run: RunFolder, experiment: Experiment, resume: bool) -> None:
    if not run.holds_run():
        if resume:
            warnings.warn(f"Nothing to resume in {run.path}: starting from step 0.", stacklevel=3)
        run.begin(experiment)
    elif resume:
        run.begin_again(experiment)
    else:
        raise ScaeError(
            f"{run.path} already holds a run; continue it with --resume or choose another folder."
        )


def _is_main_process() -> bool:
    return getattr(rank_zero_only, "rank", 0) in (0, None)


def _strategy(world: int) -> str | DDPStrategy:
    if world == 1:
        return "auto"
    # Ablations leave some parameters without a gradient. It also keeps gradients in the same
    # buckets all the time, without which sums over many processes could differ after a resume.
    return DDPStrategy(find_unused_parameters=True, timeout=PROCESS_TIMEOUT)


def _tensorboard(run: RunFolder, store: CheckpointStore) -> list[Logger]:
    if find_spec("tensorboard") is None:
        return []
    paths = store.paths()
    # Events after the step that training resumes from will be written again.
    purge = int(paths[-1].stem.removeprefix("step")) + 1 if paths else None
    return [TensorBoardLogger(run.path, name="tensorboard", version="", purge_step=purge)]


def _write_weights(module: TrainingModule, run: RunFolder) -> None:
    try:
        weights_file.write_state(final_weights(module), module.experiment, run.weights)
    except OSError as error:
        raise ScaeError(
            f"{run.weights} cannot be written ({error.strerror}); free some space on the disk "
            "and run again with --resume: the last checkpoint has the trained weights."
        ) from None


def _leave_if_asked(stop: StopRequest, module: TrainingModule, run: RunFolder) -> None:
    if not module.stopping or module.step >= module.experiment.training.steps:
        return
    name = signal.Signals(stop.signal).name if stop.signal else "another process"
    text = f"Stopped by {name} after step {module.step}; continue with --resume ({run.path})."
    print(text, file=sys.stderr, flush=True)
    if stop.signal == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + signal.SIGTERM)


def _is_lost_connection(error: RuntimeError) -> bool:
    if isinstance(error, dist.DistError):
        return True
    return any(word in str(error).lower() for word in ("gloo", "nccl", "connection", "timed out"))


@contextlib.contextmanager
def _quiet_lightning() -> Iterator[None]:
    """No tips and device reports: what users need to know is said by us."""
    loggers = [logging.getLogger(f"lightning.{part}") for part in ("pytorch", "fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"lightning\.")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
