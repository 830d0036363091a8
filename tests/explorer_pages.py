"""Small models behind the page's server, for the tests of the page."""

import base64
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from starlette.testclient import TestClient

from scae.api import Loaded
from scae.config import (
    ConstellationConfig,
    ConstellationExperiment,
    ImageDataConfig,
    ImageExperiment,
    SetTransformerConfig,
    StackedConfig,
)
from scae.explorer import app
from scae.models import build
from scae.weights_file import save_weights

TOKEN = "a-token-for-tests"
BASE = "http://127.0.0.1:8000"
PARTS, OBJECTS = 6, 5


def image_experiment(**model: Any) -> ImageExperiment:
    """An experiment on digits with a model small enough for hundreds of requests."""
    small = StackedConfig(
        parts=PARTS,
        objects=OBJECTS,
        cnn_channels=(8, 8, 8, 8),
        set_transformer=SetTransformerConfig(layers=1, output=16),
        capsule_hidden=16,
        capsule_params=8,
    )
    return ImageExperiment(
        "small", "tests", replace(small, **model), data=ImageDataConfig(name="mnist")
    )


def point_experiment(**model: Any) -> ConstellationExperiment:
    """A small constellation experiment."""
    transformer = SetTransformerConfig(layers=1, heads=2, width=16, output=16)
    small = ConstellationConfig(set_transformer=transformer, capsule_hidden=16, capsule_params=8)
    return ConstellationExperiment("small-points", "tests", replace(small, **model))


def load(experiment: ImageExperiment | ConstellationExperiment) -> Loaded:
    """The experiment's model with random but decided weights."""
    torch.manual_seed(3)
    model = build(experiment.model).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return Loaded(model, experiment, Path("."))


def client(loaded: Loaded, **options: Any) -> TestClient:
    """A client that knows the token; faults of the server show as status 500."""
    page = app(loaded, token=TOKEN, port=8000, **options)
    headers = {"authorization": f"Bearer {TOKEN}"}
    return TestClient(page, BASE, headers=headers, raise_server_exceptions=False)


def some_digit(seed: int = 0, shape: tuple[int, int, int] = (28, 28, 1)) -> np.ndarray:
    """A picture with something in it."""
    rng = np.random.default_rng(seed)
    picture = np.zeros(shape, np.uint8)
    picture[6:22, 8:20] = rng.integers(0, 256, (16, 12, shape[2]))
    return picture


def question(picture: np.ndarray, **edits: Any) -> dict[str, Any]:
    """The JSON body that asks about a picture."""
    return {"pixels": base64.b64encode(picture.tobytes()).decode(), **edits}


def pixels(text: str, *shape: int) -> np.ndarray:
    """Decoded bytes of an answer, from 0 to 1."""
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(shape) / 255


@dataclass(frozen=True)
class Running:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    address: str
    """With the token, as printed."""

    @property
    def base(self) -> str:
        return self.address.partition("/?")[0]


@contextlib.contextmanager
def running(folder: Path, loaded: Loaded, data_dir: Path | None = None) -> Iterator[Running]:
    """Start `scae explore` on a saved copy of the model; stopped at the end."""
    weights = folder / f"{loaded.experiment.name}.safetensors"
    save_weights(loaded.model, loaded.experiment, weights)
    command = [sys.executable, "-m", "scae.cli", "explore", str(weights), "--no-browser"]
    command += ["--data", str(data_dir)] if data_dir else []
    environment = {k: v for k, v in os.environ.items() if k != "SCAE_DATA"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**environment, "OMP_NUM_THREADS": "1"}
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("Open http://127.0.0.1:"), line
        yield Running(process, line.split()[1])
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()
