"""Models behind the explorer's server: shipped ones where there are any, else random ones."""

import base64
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from starlette.testclient import TestClient

from scae.api import Loaded, load_model, shipped
from scae.explorer import create_app
from scae.models import build
from scae.presets import preset
from scae.weights_file import save_weights

TOKEN = "a-token-for-tests"
BASE = "http://127.0.0.1:8000"


def model_of(name: str, dataset: str = "", **model: Any) -> Loaded:
    """The shipped model, or the preset's with random weights large enough for decided answers."""
    if name in shipped() and not dataset and not model:
        return load_model(name)
    usual = preset(name)
    data = replace(usual.data, name=dataset or usual.data.name)
    experiment = replace(usual, model=replace(usual.model, **model), data=data)
    torch.manual_seed(3)
    built = build(experiment.model).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        for parameter in built.template_parameters():
            if parameter.ndim:  # templates and alpha, not the background
                parameter.add_(5 * torch.rand_like(parameter))
    return Loaded(built, experiment, Path())


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
def running(folder: Path, loaded: Loaded) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Process, address without and token of `scae explore` on a saved copy of the model."""
    weights = folder / f"{loaded.experiment.name}.safetensors"
    save_weights(loaded.model, loaded.experiment, weights)
    command = [sys.executable, "-m", "scae.cli", "explore", str(weights), "--no-browser"]
    environment = {k: v for k, v in os.environ.items() if k != "SCAE_DATA"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**environment, "OMP_NUM_THREADS": "1"}
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("Open http://127.0.0.1:"), line
        base, _, token = line.split()[1].partition("/?token=")
        yield process, base, token
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()
