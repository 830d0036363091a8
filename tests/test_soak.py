"""Hours in small: training and the page under load keep their memory, handles and speed.

`pytest -m slow tests/test_soak.py` takes SCAE_SOAK_MINUTES (30) for each; the fast part takes
seconds and would notice only gross leaks.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from explorer_pages import Running, load, question, running, some_digit
from process_watch import HAS_PROC, Watch
from scae.presets import preset

MINUTES = float(os.environ.get("SCAE_SOAK_MINUTES", "30"))
RATE = float(os.environ.get("SCAE_SOAK_RATE", "12"))
"""Requests per second to the page, all clients together."""
CLIENTS = 4

pytestmark = pytest.mark.skipif(not HAS_PROC, reason="watches processes through /proc")


def steps_done(folder: Path) -> int:
    """The last step of metrics.csv, without reading all of it every time."""
    try:
        with open(folder / "metrics.csv", "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            return int(file.read().splitlines()[-1].split(b",")[0])
    except (OSError, IndexError, ValueError):
        return 0


def train_and_watch(folder: Path, name: str, minutes: float, every: float) -> dict[str, Any]:
    """Train a preset by the command line without end, watch it, stop it as a scheduler would."""
    command = [sys.executable, "-m", "scae.cli", "train", name, "--out", str(folder)]
    command += ["--training.steps", "100000000", "--training.log-every", "1"]
    command += ["--training.checkpoint-every", "20", "--training.diagnose-every", "20"]
    process = subprocess.Popen(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 1200
        while steps_done(folder) < 2:
            assert process.poll() is None and time.monotonic() < deadline, "it did not start"
            time.sleep(0.1)
        watch = Watch(process.pid)
        while watch.seconds < 60 * minutes:
            watch.look(steps_done(folder))
            time.sleep(every)
        watch.look(steps_done(folder))
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 143 and "continue with --resume" in said
    assert not list(folder.rglob("*.partial"))
    return watch.figures()


class Visitor:
    """One client: mostly questions, now and then a wrong one, at its share of the rate."""

    def __init__(self, server: Running) -> None:
        self.base, self.asked, self.reconnected = server.base, 0, 0
        token = server.address.partition("=")[2]
        # Answers may take long on a busy machine, which is not what is measured here.
        headers = {"authorization": f"Bearer {token}"}
        self.client = httpx.Client(headers=headers, timeout=None, base_url=self.base)

    def send(self, expected: int, method: str, path: str, **body: Any) -> None:
        try:
            answer = self.client.request(method, path, **body)
        except httpx.TransportError:  # an idle connection was closed; once more, for good
            self.reconnected += 1
            answer = self.client.request(method, path, **body)
        assert answer.status_code == expected, answer.text

    def stay(self, stop: threading.Event) -> None:
        due = time.perf_counter()
        with self.client:
            while not stop.is_set():
                i = self.asked
                if i % 10 == 7:
                    self.send(422, "POST", "/api/explain", json={"pixels": "AAAA"})
                elif i % 10 == 3:
                    self.send(200, "GET", "/api/model")
                    self.send(404, "GET", "/nothing")
                else:
                    poses = [{"object": i % 24, "pose": [0.5, 0, 0.1, 0, 0.5, 0]}]
                    body = question(some_digit(i % 1000), poses=poses, parts_off=[i % 24])
                    self.send(200, "POST", "/api/explain", json=body)
                self.asked += 1
                due = max(due + CLIENTS / RATE, time.perf_counter() - 1)
                stop.wait(max(0.0, due - time.perf_counter()))


def ask_and_watch(server: Running, minutes: float, every: float) -> dict[str, Any]:
    stop, faults = threading.Event(), []
    visitors = [Visitor(server) for _ in range(CLIENTS)]

    def visit(visitor: Visitor) -> None:
        try:
            visitor.stay(stop)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=visit, args=(visitor,)) for visitor in visitors]
    for thread in threads:
        thread.start()
    watch = Watch(server.process.pid)
    try:
        while watch.seconds < 60 * minutes and not faults:
            watch.look(sum(visitor.asked for visitor in visitors))
            time.sleep(every)
        watch.look(sum(visitor.asked for visitor in visitors))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not faults, faults[0]
    return {**watch.figures(), "reconnected": sum(visitor.reconnected for visitor in visitors)}


def judge(figures: dict[str, Any], megabytes: float) -> None:
    assert figures["mb_level"][-1] - figures["mb_level"][0] < megabytes, figures
    assert figures["handles_last"] <= figures["handles_first"] + CLIENTS, figures


def test_a_short_training_does_not_grow(tmp_path: Path) -> None:
    figures = train_and_watch(tmp_path / "run", "constellation", 0.08, 0.2)
    judge(figures, megabytes=60)


def test_a_short_visit_to_the_page_leaves_nothing_behind(tmp_path: Path) -> None:
    with running(tmp_path, load(preset("mnist"))) as server:
        judge(ask_and_watch(server, 0.08, 0.2), megabytes=60)


def long_judge(figures: dict[str, Any]) -> None:
    """Flat: less than a tenth of a megabyte per minute, no handle more, not slower.

    A training's memory moves by tens of megabytes within a step, so half an hour tells slopes
    apart only to a few tenths: what the scatter explains is not called growth.
    """
    judge(figures, megabytes=10)
    assert figures["mb_per_minute"] < 0.1 + 2 * figures["mb_per_minute_error"], figures
    # Neighbours on the machine share its caches, so processor time is not quite our own.
    assert figures["slow_down"] < 1.3, figures


@pytest.mark.slow
def test_training_soak(tmp_path: Path, reliability: Callable[..., None]) -> None:
    figures = train_and_watch(tmp_path / "run", "digits", MINUTES, 1.0)
    reliability("soak-training", what="scae train digits, one thread", **figures)
    long_judge(figures)


@pytest.mark.slow
def test_page_soak(tmp_path: Path, reliability: Callable[..., None]) -> None:
    with running(tmp_path, load(preset("mnist"))) as server:
        figures = ask_and_watch(server, MINUTES, 1.0)
    what = f"scae explore with a model of the size of MNIST's, {CLIENTS} clients, {RATE:g}/s"
    reliability("soak-explore", what=what, **figures)
    long_judge(figures)
