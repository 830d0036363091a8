"""Shipped models, and others with random weights, behind the explorer's server."""

import base64
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from starlette.testclient import TestClient

from scae.api import Loaded
from scae.explorer import create_app
from scae.models import build
from scae.presets import preset

TOKEN = "a-token-for-tests"
BASE = "http://127.0.0.1:8000"


def random_model(name: str, dataset: str = "", **model: Any) -> Loaded:
    """A preset with fresh weights."""
    usual = preset(name)
    data = replace(usual.data, name=dataset or usual.data.name)
    experiment = replace(usual, model=replace(usual.model, **model), data=data)
    torch.manual_seed(3)
    return Loaded(build(experiment.model).eval(), experiment, Path())


def client(loaded: Loaded, token: str | None = TOKEN, **options: Any) -> TestClient:
    """A client with the token; faults of the server show as status 500."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    app = create_app(loaded, TOKEN, **options)
    return TestClient(app, BASE, headers=headers, raise_server_exceptions=False)


def some_digit(seed: int = 0, shape: tuple[int, int, int] = (28, 28, 1)) -> np.ndarray:
    """A picture with something in it."""
    picture = np.zeros(shape, np.uint8)
    picture[6:22, 8:20] = np.random.default_rng(seed).integers(0, 256, (16, 12, shape[2]))
    return picture


def question(picture: np.ndarray, **edits: Any) -> dict[str, Any]:
    return {"pixels": base64.b64encode(picture.tobytes()).decode(), **edits}


def pixels(text: str, *shape: int) -> np.ndarray:
    """Decoded bytes of an answer, from 0 to 1."""
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(shape) / 255


@contextlib.contextmanager
def running(model: str) -> Iterator[tuple[str, str]]:
    """Address and token of `scae explore MODEL`."""
    command = [sys.executable, "-m", "scae.cli", "explore", model, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("Open http://127.0.0.1:"), line
            base, _, token = line.split()[1].partition("/?token=")
            yield base, token
        finally:
            process.terminate()
