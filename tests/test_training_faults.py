"""Kills aimed at writes, folders that are full, read-only or gone, and Ctrl-C at the terminal."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from process_watch import HAS_PROC
from scae.data import image_source
from scae.errors import ScaeError
from scae.presets import preset
from scae.training import read_table
from scae.training.checkpoints import CheckpointStore, read_checkpoint
from training_runs import (
    partial_files,
    points_experiment,
    run,
    source_of,
    start,
    train_in_process,
    wait_for_step,
    weights_of,
)

NOBODY = 65534


def train_digits(folder: Path, resume: bool, steps: int) -> None:
    """The preset `digits` in its full size, with a checkpoint (39 MB) every other step."""
    experiment = preset("digits")
    training = replace(experiment.training, steps=steps, batch=16, checkpoint_every=2, log_every=1)
    experiment = replace(experiment, training=training)
    run(experiment, folder, resume=resume, source=image_source(experiment.data))


def train_small(kind: str, folder: Path, resume: bool, steps: int) -> None:
    train_in_process(kind, folder, resume, {"steps": steps, "checkpoint_every": 1}, 0.005)


def kill_in_a_write(process: Any, folder: Path) -> bool:
    """Kill when the temporary file of a checkpoint is seen; whether it was caught in the write."""
    deadline = time.monotonic() + 300
    while process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.0005)  # leaves the core to the training
        try:
            names = os.listdir(folder / "checkpoints")
        except OSError:
            continue
        if any(name.endswith(".partial") for name in names):
            os.kill(process.pid, signal.SIGKILL)
            break
    process.join()
    return bool(partial_files(folder))


def newest_step(folder: Path) -> int:
    """Step of the newest checkpoint, -1 if there is none."""
    paths = CheckpointStore(folder / "checkpoints", 2).paths()
    return int(paths[-1].stem.removeprefix("step")) if paths else -1


def wait_for_checkpoint(process: Any, folder: Path, later: int) -> None:
    """Return when there is a checkpoint `later` steps after the newest one."""
    goal, deadline = newest_step(folder) + later, time.monotonic() + 600
    while process.is_alive() and newest_step(folder) < goal:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def kill_twenty(
    target: Callable[..., None], arguments: tuple, folder: Path, steps: int, longest: float
) -> dict[str, Any]:
    """Kill a training 20 times, every other time in a checkpoint's write, then let it finish."""
    moments, caught, reached = random.Random(0), 0, []
    for kill in range(20):
        process = start(target, *arguments, folder, kill > 0, steps)
        if kill % 4 < 2:  # the others come at any time, also before the first step
            wait_for_checkpoint(process, folder, moments.randint(1, steps // 20))
        if kill % 2 == 0:
            caught += kill_in_a_write(process, folder)
        else:
            process.join(moments.uniform(0.0, longest))
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        assert process.exitcode == -signal.SIGKILL, "it ended before it could be killed"
        reached.append(newest_step(folder))
    process = start(target, *arguments, folder, True, steps)
    process.join(900)
    assert process.exitcode == 0
    return {"kills": 20, "caught_in_a_write": caught, "killed_after_step": reached}


def same_rows(a: Path, b: Path) -> bool:
    tables = [read_table(folder / "metrics.csv") for folder in (a, b)]
    timing = {"seconds", "images_per_second"}
    first, second = ({k: v for k, v in t.items() if k not in timing} for t in tables)
    return first == second


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["digits", "stages", "points", "images"])
def test_twenty_kills(kind: str, tmp_path: Path, reliability: Callable[..., None]) -> None:
    target, arguments = (train_digits, ()) if kind == "digits" else (train_small, (kind,))
    steps, longest = (40, 4.0) if kind == "digits" else (200, 0.6)
    whole = start(target, *arguments, tmp_path / "whole", False, steps)
    whole.join(900)
    assert whole.exitcode == 0
    folder = tmp_path / "killed"
    figures = kill_twenty(target, arguments, folder, steps, longest)
    identical = weights_of(folder) == weights_of(tmp_path / "whole")
    left = len(partial_files(folder))
    reliability(f"kills-{kind}", steps=steps, identical=identical, files_left=left, **figures)
    assert identical and left == 0
    assert same_rows(folder, tmp_path / "whole")
    assert figures["caught_in_a_write"] >= 3


def test_a_kill_in_a_checkpoints_write_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    for attempt in range(6):
        process = start(train_small, "points", folder, attempt > 0, 80)
        if kill_in_a_write(process, folder):
            break
        assert process.exitcode == -signal.SIGKILL
    assert partial_files(folder), "no kill was caught in a write"
    process = start(train_small, "points", folder, True, 80)
    process.join(300)
    assert process.exitcode == 0 and partial_files(folder) == []
    run(points_experiment(steps=80, checkpoint_every=1), tmp_path / "whole")
    assert weights_of(folder) == weights_of(tmp_path / "whole")


class Disturbed:
    """A source that does something to the run's folder before a step."""

    name, fingerprint = "disturbed", "0"

    def __init__(self, actions: dict[int, Callable[[], object]]) -> None:
        self.actions = actions
        self.source = source_of(points_experiment())

    def batch(self, step: int, *arguments: int) -> tuple[Tensor, ...]:
        if step in self.actions:
            self.actions.pop(step)()
        return self.source.batch(step, *arguments)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 kB; test_training_guards has a full disk that needs no mount."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("may not mount; the file-size limit in test_training_guards stands in")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_full_file_system(tmp_path: Path, small_disk: Path) -> None:
    ballast = small_disk / "ballast"

    def fill() -> None:
        full = pytest.raises(OSError, match="No space left")
        with open(ballast, "wb", buffering=0) as file, full:
            while True:
                file.write(bytes(4096))

    source = Disturbed({9: fill, 18: ballast.unlink})
    experiment = points_experiment(keep=2)
    with pytest.warns(UserWarning, match="checkpoint of step 10 could not be written .No space"):
        assert run(experiment, small_disk / "run", source=source).steps == 24
    run(experiment, tmp_path / "whole", source=Disturbed({}))
    assert weights_of(small_disk / "run") == weights_of(tmp_path / "whole")
    assert same_rows(small_disk / "run", tmp_path / "whole")
    assert partial_files(small_disk) == []


def test_folder_that_goes_missing_is_said_and_training_ends_with_advice(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    source = Disturbed({9: lambda: shutil.rmtree(folder)})
    with (
        pytest.warns(UserWarning, match="checkpoint of step 10 could not be written"),
        pytest.raises(ScaeError, match=r"weights.safetensors cannot be written \(No such file"),
    ):
        run(points_experiment(), folder, source=source)
    with pytest.warns(UserWarning, match="Nothing to resume"):
        assert run(points_experiment(), folder, resume=True, source=Disturbed({})).steps == 24
    run(points_experiment(), tmp_path / "whole", source=Disturbed({}))
    assert weights_of(folder) == weights_of(tmp_path / "whole")


def as_nobody(answer: Path, folder: Path, lock_at: int | None, resume: bool) -> None:
    """Train without root's right to write everywhere; the error's text goes to `answer`."""
    import scae.kernels.attention  # nobody may not be allowed to read where numba is installed

    assert scae.kernels.available()
    with open(answer, "w") as file:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

        def lock() -> None:
            for place in (folder / "checkpoints", folder):
                place.chmod(0o555)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                source = Disturbed({} if lock_at is None else {lock_at: lock})
                run(points_experiment(), folder, resume=resume, source=source)
            except ScaeError as error:
                file.write(str(error))
            file.writelines(f"\n{w.message}" for w in caught)


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that every user may enter and write to, unlike pytest's own."""
    place = Path(tempfile.mkdtemp(prefix="scae-test-"))
    place.chmod(0o777)
    yield place
    shutil.rmtree(place)


def train_as_nobody(place: Path, folder: Path, lock_at: int | None, resume: bool = False) -> str:
    answer = place / "answer"
    process = start(as_nobody, answer, folder, lock_at, resume)
    process.join(120)
    assert process.exitcode == 0
    return answer.read_text()


def test_read_only_folder_is_refused_at_once(open_place: Path) -> None:
    closed = open_place / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    said = train_as_nobody(open_place, closed / "run", None)
    assert "closed/run cannot be written to (Permission denied)" in said
    # The same for a run that was begun when it still could be written to.
    folder = open_place / "run"
    run(points_experiment(), folder)
    for path in (folder / "checkpoints", folder, *folder.iterdir()):
        path.chmod(0o555)
    before = weights_of(folder)
    said = train_as_nobody(open_place, folder, None, resume=True)
    assert "run cannot be written to (Permission denied)" in said
    assert weights_of(folder) == before


def test_folder_made_read_only_in_the_middle_keeps_what_was_there(open_place: Path) -> None:
    folder = open_place / "run"
    said = train_as_nobody(open_place, folder, 12)
    assert "weights.safetensors cannot be written (Permission denied)" in said
    assert "checkpoint of step 15 could not be written (Permission denied)" in said
    newest = CheckpointStore(folder / "checkpoints", 2).paths()[-1]
    assert read_checkpoint(newest).step == 10
    for place in (folder, folder / "checkpoints"):
        place.chmod(0o777)
    run(points_experiment(), folder, resume=True, source=Disturbed({}))
    run(points_experiment(), open_place / "whole", source=Disturbed({}))
    assert weights_of(folder) == weights_of(open_place / "whole")


@pytest.mark.skipif(not HAS_PROC, reason="signals of POSIX")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_command_saves_and_leaves_within_five_seconds(
    number: int, code: int, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "scae.cli", "train", "constellation", "--out", str(folder)]
    command += ["--training.steps", "100000", "--training.log-every", "1"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    process.is_alive = lambda: process.poll() is None  # type: ignore[attr-defined]
    try:
        wait_for_step(folder, 2, process)
        sent = time.monotonic()
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        seconds = time.monotonic() - sent
    finally:
        process.kill()
    assert process.returncode == code and seconds < 5
    assert "continue with --resume" in said and "Traceback" not in said
    newest = read_checkpoint(CheckpointStore(folder / "checkpoints", 2).paths()[-1])
    assert newest.step == read_table(folder / "metrics.csv")["step"][-1] >= 2
    assert partial_files(folder) == []
