"""Nothing we read can run code: hostile files are refused, and the source has no such call.

Ruff's S rules find pickle, eval, yaml.load and the like; the calls that need an option to be
safe are looked for here.
"""

import ast
import io
import pickle
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import scae
from data_files import refuse
from scae.api.loading import load_model
from scae.data.folder import read_image
from scae.data.readers import read_arrays, read_cifar10
from scae.training.run_folder import CHECKPOINT_KEYS, newest_checkpoint

SOURCE = Path(scae.__file__).parent
SCRIPT = re.compile(
    r"\beval\s*\(|new\s+Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write"
    r"|setTimeout\(\s*['\"]|https?://(?!www\.w3\.org)"
)
SAFE = {"torch.load": ("weights_only", True), "np.load": ("allow_pickle", False)}
FORBIDDEN = {"torch.jit.load", "torch.hub.load", "joblib.load", "os.system", "numpy.load"}


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable, tuple]:
        return (Path.touch, (self.marker,))


def write_archive(path: Path, _: Payload) -> None:
    """Members that lead out of the folder, and a link to a file of the machine."""
    with tarfile.open(path, "w:gz") as tar:
        for name in ("../data_batch_1.bin", "/tmp/data_batch_2.bin"):
            member = tarfile.TarInfo(name)
            member.size = 3
            tar.addfile(member, io.BytesIO(b"abc"))
        link = tarfile.TarInfo("data_batch_3.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)


HOSTILE: dict[str, tuple[Callable[[Path, Payload], object], Callable[[Path], object]]] = {
    "weights.safetensors": (lambda path, evil: torch.save({"w": evil}, path), load_model),
    "model.safetensors": (lambda path, evil: path.write_bytes(pickle.dumps(evil)), load_model),
    "a.npz": (lambda path, evil: np.savez(path, images=np.array([evil], object)), read_arrays),
    "b.npy": (lambda path, evil: np.save(path, np.array([evil], object)), read_arrays),
    "c.npy": (lambda path, evil: path.write_bytes(pickle.dumps(evil)), read_arrays),
    "d.tar.gz": (write_archive, lambda path: read_cifar10([path], "train")),
    # Pillow would start Ghostscript for it.
    "e.png": (lambda path, _: path.write_text("%!PS-Adobe-3.0 EPSF-3.0\n"), read_image),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name: str, tmp_path: Path) -> None:
    write, read = HOSTILE[name]
    path = tmp_path / "given" / name
    path.parent.mkdir()
    write(path, Payload(tmp_path / "executed"))
    refuse(lambda: read(path), str(path))
    assert sorted(tmp_path.rglob("*")) == [path.parent, path]


@pytest.mark.parametrize("key", sorted(CHECKPOINT_KEYS))
def test_hostile_checkpoints_are_refused(key: str, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    contents = dict.fromkeys(CHECKPOINT_KEYS) | {key: Payload(tmp_path / "executed")}
    torch.save(contents, tmp_path / "checkpoints" / "step000000001.ckpt")
    with pytest.warns(UserWarning, match="corrupt"):
        assert newest_checkpoint(tmp_path) is None
    assert not (tmp_path / "executed").exists()


def unsafe_calls(text: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            given = {k.arg: getattr(k.value, "value", None) for k in node.keywords}
            unsafe = name in SAFE and given.get(SAFE[name][0]) is not SAFE[name][1]
            if unsafe or name in FORBIDDEN or given.get("allow_pickle"):
                found.append(name)
    return found


def test_no_source_file_loads_unsafely() -> None:
    for path in SOURCE.rglob("*.py"):
        assert unsafe_calls(path.read_text()) == [], path
    for bad in ("torch.load(p)", "np.load(p, allow_pickle=True)", "joblib.load(p)"):
        assert unsafe_calls(bad)


def test_the_page_runs_no_text_either() -> None:
    for path in (SOURCE / "explorer" / "page").iterdir():
        found = SCRIPT.findall(path.read_text(encoding="utf-8"))
        assert found == [], f"{path.name}: {found}"
