"""Exports give the model's own numbers, for any batch, without this package."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import torch

import scae
from scae.api import ImageCapsules
from scae.config import NoiseConfig
from scae.errors import ScaeError
from scae.export import export
from small_models import image_capsules, point_capsules

IMAGES = np.random.default_rng(0).random((5, 1, 14, 12), np.float32)


@pytest.fixture(autouse=True)
def unchecked_shapes() -> Iterator[None]:
    """The checks of our tests compare sizes, which a tracer would take for constants."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def expected(model: ImageCapsules, images: np.ndarray) -> list[np.ndarray]:
    found = model.explain(images)
    parts = [found.parts.pose, found.parts.presence]
    return [found.objects.prior, found.objects.posterior, *parts]


def check(found: list[np.ndarray], truth: list[np.ndarray], tolerance: float = 1e-4) -> None:
    for ours, theirs in zip(found, truth, strict=True):
        assert np.abs(ours - theirs).max() <= tolerance


def test_onnx_gives_the_same_numbers_for_any_batch_without_torch(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    model = image_capsules()
    export(model, "onnx", tmp_path / "new" / "model.onnx")
    np.save(tmp_path / "new" / "images.npy", IMAGES)
    code = (
        "import sys; sys.modules['torch'] = sys.modules['scae'] = None\n"
        "import numpy as np, onnxruntime\n"
        "session, images = onnxruntime.InferenceSession('model.onnx'), np.load('images.npy')\n"
        "for n in (1, 5): np.savez(f'{n}.npz', *session.run(None, {'image': images[:n]}))\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "new", check=True)
    for count in (1, 5):
        found = np.load(tmp_path / "new" / f"{count}.npz")
        check([found[name] for name in found], expected(model, IMAGES[:count]))


def test_points_are_exported_for_any_number_of_scenes_and_points(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = point_capsules()
    session = runtime.InferenceSession(export(model, "onnx", tmp_path / "points.onnx"))
    rng = np.random.default_rng(1)
    for scenes, points in ((1, 4), (6, 9)):
        x = rng.uniform(30, 90, (scenes, points, 2)).astype(np.float32)
        presence = (rng.random((scenes, points)) < 0.8).astype(np.float32)
        found = session.run(None, {"points": x, "presence": presence})
        both = model.presences(x, presence)
        check(found[:2], [both.prior, both.posterior])
        assert np.array_equal(found[2], model.segment(x, presence))


@pytest.mark.slow
def test_program_gives_the_same_numbers_and_no_noise(tmp_path: Path) -> None:
    noisy = image_capsules(noise=NoiseConfig(in_evaluation=True))
    program = torch.export.load(export(noisy, "program", tmp_path / "model.pt2")).module()
    for count in (1, 5):
        found = [x.numpy() for x in program(torch.from_numpy(IMAGES[:count]))]
        check(found, expected(image_capsules(), IMAGES[:count]), 1e-6)


def test_the_hubs_layout_is_read_back(tmp_path: Path) -> None:
    model = image_capsules()
    folder = export(model, "safetensors", tmp_path / "folder")
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors"}
    again = scae.load(folder)
    assert np.array_equal(again.presences(IMAGES).prior, model.presences(IMAGES).prior)
    single = export(model, "safetensors", tmp_path / "one.safetensors")
    assert scae.load(single).experiment == model.experiment


def test_bad_exports_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = image_capsules()
    with pytest.raises(ScaeError, match="is a folder"):
        export(model, "onnx", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ScaeError, match="is a file"):
        export(model, "safetensors", tmp_path / "file")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ScaeError, match=r"pip install 'scae\[export\]'"):
        export(model, "onnx", tmp_path / "model.onnx")
