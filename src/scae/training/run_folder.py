"""The folder of one run, readable by anyone and written by one training at a time."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from scae import config_json, files
from scae.config import Experiment
from scae.errors import ScaeError
from scae.training import environment

# Fields that change what is written down and when, but not one weight.
FREE_ON_RESUME = ("log_every", "diagnose_every", "checkpoint_every", "keep")


class RunFolder:
    """Where each file of a run is.

    ``config.json``, ``environment.json``, ``metrics.csv``, ``diagnostics.csv``,
    ``checkpoints/``, ``weights.safetensors``, ``tensorboard/``, ``figures/``, ``report.html``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.json"
        self.environment = path / "environment.json"
        self.metrics = path / "metrics.csv"
        self.diagnostics = path / "diagnostics.csv"
        self.checkpoints = path / "checkpoints"
        self.weights = path / "weights.safetensors"

    def create(self) -> None:
        """Make the folder and show that it can be written to, before hours are spent."""
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            probe = self.path / ".lock"
            with open(probe, "ab"):
                pass
        except OSError as error:
            raise ScaeError(
                f"The run folder {self.path} cannot be written to ({error.strerror}); "
                "choose another folder or correct its permissions."
            ) from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other trainings out; the system lifts the lock when the process dies."""
        with open(self.path / ".lock", "ab") as file:
            if not _try_lock(file):
                raise ScaeError(
                    f"Another training is running in {self.path}; wait for it, stop it, "
                    "or choose another folder."
                )
            for folder in (self.path, self.checkpoints):
                files.remove_partial(folder)
            yield

    def holds_run(self) -> bool:
        """Whether a training was started here."""
        return self.config.exists() or self.weights.exists() or any(self.checkpoints.glob("step*"))

    def read_experiment(self) -> Experiment:
        """The experiment in `config.json`."""
        try:
            text = self.config.read_bytes()
        except OSError as error:
            raise ScaeError(
                f"{self.config} cannot be read ({error.strerror}); expected a run folder."
            ) from None
        return config_json.parse(text, str(self.config))

    def begin(self, experiment: Experiment) -> None:
        """Write down what is run and with what."""
        _write_json(self.config, config_json.to_json(experiment))
        _write_json(self.environment, environment.describe() | {"resumed": []})

    def begin_again(self, experiment: Experiment) -> None:
        """Refuse to resume a different experiment; note the resumption in `environment.json`."""
        if not self.config.exists():  # killed between the folder and its first file
            self.begin(experiment)
            return
        changed = config_json.differences(
            _without_free_fields(self.read_experiment()), _without_free_fields(experiment)
        )
        if changed:
            raise ScaeError(
                f"The run in {self.path} was started with another configuration "
                f"({'; '.join(changed)}); resume with the same one or use a new folder."
            )
        _write_json(self.config, config_json.to_json(experiment))
        first = self._read_environment()
        now = environment.describe()
        resumed = [*first.get("resumed", []), now]
        _write_json(self.environment, (first or now) | {"resumed": resumed})

    def _read_environment(self) -> dict[str, Any]:
        try:
            value = json.loads(self.environment.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) and isinstance(value.get("resumed"), list) else {}


def _without_free_fields(experiment: Experiment) -> Experiment:
    free: dict[str, Any] = dict.fromkeys(FREE_ON_RESUME, 1)
    training = replace(experiment.training, **free)
    return replace(experiment, training=training)


def _write_json(path: Path, value: object) -> None:
    try:
        files.write_json(path, value)
    except OSError as error:
        raise ScaeError(
            f"{path} cannot be written ({error.strerror}); free some space on the disk or "
            "choose another folder."
        ) from None


def _try_lock(file: IO[bytes]) -> bool:
    """Lock through the open file, which a `kill -9` cannot leave behind as a pid file can be."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
