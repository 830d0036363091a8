"""Exports give the model's own numbers, for any batch, without this package."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import numpy as np
import pytest

from scae.api import Loaded
from scae.config import NoiseConfig
from scae.errors import ScaeError
from scae.export import export
from small_models import image_capsules, point_capsules

IMAGES = np.random.default_rng(0).random((5, 1, 14, 12), np.float32)
RUN = """
import sys
sys.modules["torch"] = sys.modules["scae"] = None  # importing them fails
import numpy, onnxruntime
session = onnxruntime.InferenceSession("model.onnx")
for number in "01":
    numpy.savez("out" + number, *session.run(None, dict(numpy.load(f"in{number}.npz"))))
"""


@pytest.fixture(autouse=True)
def unchecked_shapes() -> Iterator[None]:
    """The checks of our tests compare sizes, which a tracer would take for constants."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def outputs(model: Loaded, folder: Path, *inputs: dict[str, np.ndarray]) -> list[list[np.ndarray]]:
    """What the exported graph gives for two inputs, in a process that cannot import torch."""
    export(model, folder / "model.onnx")
    for number, arrays in enumerate(inputs):
        np.savez(folder / f"in{number}.npz", **arrays)
    subprocess.run([sys.executable, "-c", RUN], cwd=folder, check=True)
    return [list(np.load(folder / f"out{number}.npz").values()) for number in (0, 1)]


def test_images_of_any_number_without_torch_and_noise(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    noisy = image_capsules(noise=NoiseConfig(in_evaluation=True))
    batches = IMAGES[:1], IMAGES
    found = outputs(noisy, tmp_path / "new", *({"image": x} for x in batches))
    for images, ours in zip(batches, found, strict=True):
        truth = image_capsules().explain(images)
        parts = [truth.parts.pose, truth.parts.presence]
        expected = [truth.objects.prior, truth.objects.posterior, *parts]
        for x, y in zip(ours, expected, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-4)


def test_any_number_of_scenes_and_points_without_torch(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    rng, inputs = np.random.default_rng(1), []
    for scenes, points in ((1, 4), (6, 9)):
        x = rng.uniform(30, 90, (scenes, points, 2)).astype(np.float32)
        presence = (rng.random((scenes, points)) < 0.8).astype(np.float32)
        inputs.append({"points": x, "presence": presence})
    model = point_capsules()
    for given, ours in zip(inputs, outputs(model, tmp_path, *inputs), strict=True):
        both = model.presences(**given)
        np.testing.assert_allclose(ours[0], both.prior, atol=1e-4)
        np.testing.assert_allclose(ours[1], both.posterior, atol=1e-4)
        assert np.array_equal(ours[2], model.segment(**given))


def test_bad_exports_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = image_capsules()
    with pytest.raises(ScaeError, match="is a folder"):
        export(model, tmp_path)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ScaeError, match=r"pip install 'scae\[export\]'"):
        export(model, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()
