"""Exports give the model's own numbers, for any batch, without this package."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from PIL import Image

import scae
from scae import config_json, hub
from scae.api import ImageCapsules, wrap
from scae.config import NoiseConfig
from scae.data import load_images
from scae.errors import ScaeError
from scae.export import export
from scae.models import StackedCapsuleAutoencoder, build
from small_models import image_capsules, point_capsules


@pytest.fixture(autouse=True)
def unchecked_shapes() -> Iterator[None]:
    """The checks of our tests compare sizes, which a tracer would take for constants."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


DOCS = Path(__file__).parents[1] / "docs"
IMAGES = np.random.default_rng(0).random((5, 1, 14, 12), np.float32)


def expected(model: ImageCapsules, images: np.ndarray) -> list[np.ndarray]:
    found = model.explain(images)
    parts = [found.parts.pose, found.parts.presence]
    return [found.objects.prior, found.objects.posterior, *parts]


def check(found: list[np.ndarray], truth: list[np.ndarray], tolerance: float = 1e-4) -> None:
    assert len(found) == len(truth)
    for ours, theirs in zip(found, truth, strict=True):
        assert np.abs(ours - theirs).max() <= tolerance


def test_onnx_gives_the_same_numbers_for_any_batch(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = image_capsules()
    path = export(model, "onnx", tmp_path / "new" / "model.onnx")
    session = runtime.InferenceSession(path)
    assert session.get_inputs()[0].shape == ["batch", 1, 14, 12]
    for count in (1, 2, 5):
        found = session.run(None, {"image": IMAGES[:count]})
        check(found, expected(model, IMAGES[:count]))


def test_program_gives_the_same_numbers_for_any_batch(tmp_path: Path) -> None:
    model = image_capsules()
    path = export(model, "program", tmp_path / "model.pt2")
    program = torch.export.load(path).module()
    for count in (1, 5):
        found = [x.numpy() for x in program(torch.from_numpy(IMAGES[:count]))]
        check(found, expected(model, IMAGES[:count]), 1e-6)


@pytest.mark.parametrize("views", [1, 16])
def test_points_are_exported_for_any_number_of_scenes_and_points(
    views: int, tmp_path: Path
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = point_capsules(views=views)
    session = runtime.InferenceSession(export(model, "onnx", tmp_path / "points.onnx"))
    rng = np.random.default_rng(1)
    for scenes, points in ((1, 4), (6, 9)):
        x = rng.uniform(-1, 1, (scenes, points, 2)).astype(np.float32)
        there = (rng.random((scenes, points)) < 0.8).astype(np.float32)
        prior, posterior, segment = session.run(None, {"points": x, "presence": there})
        both = model.presences(x, there)
        check([prior, posterior], [both.prior, both.posterior])
        assert np.array_equal(segment, model.segment(x, there))


def test_noise_that_is_kept_in_evaluation_is_not_exported(tmp_path: Path) -> None:
    noisy = image_capsules(noise=NoiseConfig(in_evaluation=True))
    program = torch.export.load(export(noisy, "program", tmp_path / "model.pt2")).module()
    found = [x.numpy() for x in program(torch.from_numpy(IMAGES))]
    check(found, expected(image_capsules(), IMAGES), 1e-6)


@pytest.mark.data
def test_the_readmes_example_on_a_real_digit_without_this_package(
    tmp_path: Path, data_dir: Path
) -> None:
    pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    experiment = scae.preset("mnist")
    model = wrap(build(experiment.model), experiment)
    export(model, "onnx", tmp_path / "mnist.onnx")
    digits = load_images("mnist", "test", data_dir).images[:40]
    Image.fromarray(digits[0, 0].numpy()).save(tmp_path / "digit.png")
    text = (DOCS / "export.md").read_text()
    code = re.search(r"```python\n(import numpy.*?)```", text, re.DOTALL)
    assert code is not None and "scae" not in code[1] and len(code[1].splitlines()) <= 10
    assert code[1] in (DOCS.parent / "README.md").read_text()
    ran = subprocess.run(
        [sys.executable, "-c", code[1]], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    best = int(model.presences(digits[:1]).prior.argmax())
    assert ran.stdout.startswith(f"object {best}: presence")
    import onnxruntime

    session = onnxruntime.InferenceSession(tmp_path / "mnist.onnx")
    check(
        session.run(None, {"image": (digits.float() / 255).numpy()}),
        expected(model, digits.numpy()),
    )


def test_the_hubs_layout_is_read_back(tmp_path: Path) -> None:
    model = image_capsules()
    folder = export(model, "safetensors", tmp_path / "folder")
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors"}
    for again in (scae.load(folder), hub.from_pretrained(folder)):
        assert np.array_equal(again.presences(IMAGES).prior, model.presences(IMAGES).prior)
    single = export(model, "safetensors", tmp_path / "one.safetensors")
    assert scae.load(single).experiment == model.experiment


def test_the_hubs_own_class_reads_and_writes_our_folders(tmp_path: Path) -> None:
    """A mix-in model with our weights: both directions."""
    library = pytest.importorskip("huggingface_hub")

    class OnHub(StackedCapsuleAutoencoder, library.PyTorchModelHubMixin):  # type: ignore[misc]
        def __init__(self, **config: Any) -> None:
            config.pop("config", None)  # the mix-in hands it over a second time
            super().__init__(config_json.from_json(config, "test").model)

    model = image_capsules()
    export(model, "safetensors", tmp_path / "ours")
    theirs = OnHub.from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        prior = theirs.object_presences(torch.from_numpy(IMAGES)).prior.numpy()
    assert np.array_equal(prior, model.presences(IMAGES).prior)
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    theirs.save_pretrained(tmp_path / "theirs", config=config)
    again = scae.load(tmp_path / "theirs")
    assert np.array_equal(again.presences(IMAGES).prior, prior)


def test_pushing_uploads_the_layout_and_fetching_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in for the Hub: a folder on this disk."""
    library = pytest.importorskip("huggingface_hub")
    model, there = image_capsules(), tmp_path / "user" / "name"

    class Api:
        def __init__(self, token: str | None) -> None:
            assert token == "secret"

        def create_repo(self, name: str, **_: Any) -> str:
            there.mkdir(parents=True)
            return f"https://hub/{name}"

        def upload_folder(self, repo_id: str, folder_path: str) -> None:
            for path in Path(folder_path).iterdir():
                (there / path.name).write_bytes(path.read_bytes())

    monkeypatch.setattr(library, "HfApi", Api)
    monkeypatch.setattr(library, "snapshot_download", lambda name, **_: str(tmp_path / name))
    assert hub.push_to_hub(model, "user/name", token="secret") == "https://hub/user/name"
    names = {path.name for path in there.iterdir()}
    assert names == {"README.md", "config.json", "model.safetensors"}
    again = hub.from_pretrained("user/name")
    assert np.array_equal(again.presences(IMAGES).prior, model.presences(IMAGES).prior)


def test_a_failed_or_impossible_fetch_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no network\nand a long story")

    fake = SimpleNamespace(snapshot_download=fail)
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    with pytest.raises(ScaeError, match=r"could not be fetched from the Hub: no network$"):
        hub.from_pretrained("user/name")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ScaeError, match=r"pip install 'scae\[hub\]'"):
        hub.from_pretrained("user/name")


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
    folder = export(model, "safetensors", tmp_path / "folder")
    (folder / "config.json").write_text("{}")
    with pytest.raises(ScaeError, match=r"config\.json"):
        scae.load(folder)
