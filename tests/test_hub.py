"""The Hub by its own mixin, with a folder on this disk in its place."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import scae
from scae.errors import ScaeError
from scae.prediction import read_clusters, write_clusters
from scae.weights_file import save_weights
from small_models import image_capsules

huggingface_hub = pytest.importorskip("huggingface_hub")

from scae import hub  # noqa: E402

IMAGES = np.random.default_rng(0).random((5, 1, 14, 12), np.float32)


class Api:
    """Uploads into a folder."""

    root: Path

    def __init__(self, token: str | None = None) -> None:
        assert token == "secret"

    def create_repo(self, repo_id: str, **_: Any) -> Any:
        (self.root / repo_id).mkdir(parents=True)
        return SimpleNamespace(repo_id=repo_id)

    def upload_folder(self, repo_id: str, folder_path: Path, **_: Any) -> str:
        for path in Path(folder_path).iterdir():
            (self.root / repo_id / path.name).write_bytes(path.read_bytes())
        return f"https://hub/{repo_id}"


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def download(repo_id: str, filename: str, **_: Any) -> str:
        return str(tmp_path / repo_id / filename)

    Api.root = tmp_path
    mixin = sys.modules["huggingface_hub.hub_mixin"]
    monkeypatch.setattr(mixin, "HfApi", Api)
    monkeypatch.setattr(mixin, "hf_hub_download", download)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, **_: tmp_path / name)
    return tmp_path


def test_pushing_uploads_weights_with_a_card_and_fetching_reads_them(remote: Path) -> None:
    model = image_capsules()
    assert hub.push_to_hub(model, "user/name", token="secret") == "https://hub/user/name"
    names = {path.name for path in (remote / "user/name").iterdir()}
    assert names == {"README.md", "config.json", "model.safetensors"}
    card = (remote / "user/name/README.md").read_text()
    assert "library_name: scae" in card and 'from_pretrained("user/name")' in card
    assert json.loads((remote / "user/name/config.json").read_text())["kind"] == "images"
    again = hub.from_pretrained("user/name")
    assert again.experiment == model.experiment
    assert np.array_equal(again.presences(IMAGES).prior, model.presences(IMAGES).prior)


def test_local_folders_are_read_with_their_clusters(tmp_path: Path) -> None:
    model = image_capsules()
    save_weights(model.model, model.experiment, tmp_path / "weights.safetensors")
    write_clusters(tmp_path, np.eye(4)[:2])
    hub.HubCapsules(scae.load(tmp_path)).save_pretrained(tmp_path / "hub")
    again = hub.from_pretrained(tmp_path / "hub")
    assert again.experiment == model.experiment
    assert np.array_equal(read_clusters(again.folder), np.eye(4)[:2])


def test_a_failed_fetch_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no network\nand a long story")

    monkeypatch.setattr(sys.modules["huggingface_hub.hub_mixin"], "hf_hub_download", fail)
    with pytest.raises(ScaeError, match=r"could not be fetched: no network$"):
        hub.from_pretrained("user/name")


def test_without_the_library_the_extra_is_named() -> None:
    code = "import sys; sys.modules['huggingface_hub'] = None; import scae.hub"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'scae[hub]'" in ran.stderr
