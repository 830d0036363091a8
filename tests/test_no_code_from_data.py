"""Hostile files are refused: code, paths, bombs and lying headers. No source file unpickles.

Ruff's S rules find pickle, eval, yaml.load and the like; the calls that need an option to be
safe are looked for here.
"""

import gzip
import io
import json
import pickle
import re
import struct
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

import scae
from data_files import refuse
from mutate_files import peak_mb
from scae import config
from scae.api.loading import load
from scae.data.folder import read_image
from scae.data.readers import (
    UNCHECKED_BYTES,
    read_array_images,
    read_arrays,
    read_cifar10,
    read_idx,
    read_svhn,
)
from scae.presets import preset
from scae.training.run_folder import CHECKPOINT_KEYS, newest_checkpoint
from scae.weights_file import METADATA_KEY

SOURCE = Path(scae.__file__).parent
SCRIPT = re.compile(
    r"\beval\s*\(|new\s+Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write"
    r"|setTimeout\(\s*['\"]|https?://(?!www\.w3\.org)"
)
UNSAFE = re.compile(
    r"torch\.load\((?![^)]*weights_only=True)|np\.load\((?![^)]*allow_pickle=False)"
    r"|allow_pickle=True|(joblib|torch\.jit|torch\.hub)\.load|os\.system"
)
BOMB = 2**28


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable, tuple]:
        return (Path.touch, (self.marker,))


Write = Callable[[Path, Payload], object]


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


def write_npz_that_leads_out(path: Path, evil: Payload) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../executed", pickle.dumps(evil))


def write_bomb(path: Path, _: Payload) -> None:
    """Zeros, packed to a thousandth, behind a header that is right about them."""
    images = {"descr": "|u1", "fortran_order": False, "shape": (BOMB // 1024, 32, 32)}
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, images)
    if path.suffix == ".npz":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("images.npy", header.getvalue() + bytes(BOMB))
    elif path.suffix == ".mat":  # a header, then one compressed element
        body = zlib.compress(struct.pack("<2I", 14, BOMB) + bytes(BOMB), 1)
        start = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
        path.write_bytes(start + struct.pack("<2I", 15, len(body)) + body)
    else:
        idx = bytes((0, 0, 8, 3)) + struct.pack(">3I", BOMB // 1024, 32, 32)
        path.write_bytes(gzip.compress(idx + bytes(BOMB), 1))


def safetensors_that(header: dict[str, Any] | bytes, length: int | None = None) -> Write:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    start = struct.pack("<Q", len(text) if length is None else length)
    return lambda path, _: path.write_bytes(start + text + bytes(8))


def weights_of_a_model(path: Path, **fields: Any) -> None:
    """A file that describes a larger model than it holds."""
    described = config.to_json(preset("mnist"))
    described["model"] |= fields
    tensors, metadata = {"weight": torch.zeros(1)}, {METADATA_KEY: json.dumps(described)}
    path.write_bytes(safetensors.torch.save(tensors, metadata))


def tensor(shape: list[int], end: int) -> dict[str, Any]:
    return {"w": {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}}


def read_svhn_file(path: Path) -> object:
    return read_svhn([path], "train")


def read_cifar(path: Path) -> object:
    return read_cifar10([path], "train")


HUGE = 2**20
MANY = [1] * 100_000
HOSTILE: dict[str, tuple[Write, Callable[[Path], object]]] = {
    # Code.
    "weights.safetensors": (lambda path, evil: torch.save({"w": evil}, path), load),
    "model.safetensors": (lambda path, evil: path.write_bytes(pickle.dumps(evil)), load),
    "a.npz": (lambda path, evil: np.savez(path, images=np.array([evil], object)), read_arrays),
    "b.npy": (lambda path, evil: np.save(path, np.array([evil], object)), read_arrays),
    "c.npy": (lambda path, evil: path.write_bytes(pickle.dumps(evil)), read_arrays),
    "d.mat": (lambda path, evil: path.write_bytes(pickle.dumps(evil)), read_svhn_file),
    # Pillow would start Ghostscript for it.
    "e.png": (lambda path, _: path.write_text("%!PS-Adobe-3.0 EPSF-3.0\n"), read_image),
    # Paths.
    "f.tar.gz": (write_archive, read_cifar),
    "g.npz": (write_npz_that_leads_out, lambda path: read_array_images(path, "train")),
    # Bombs.
    "h.npz": (write_bomb, read_arrays),
    "i.idx.gz": (write_bomb, lambda path: read_idx(path, 3)),
    "j.tar.gz": (write_bomb, read_cifar),
    "l.mat": (write_bomb, read_svhn_file),
    # Lying headers.
    "m.safetensors": (safetensors_that(tensor([HUGE, HUGE], 8)), load),
    "n.safetensors": (safetensors_that(tensor([HUGE, HUGE], 4 * HUGE**2)), load),
    "o.safetensors": (safetensors_that(b"{}", 2**63), load),
    "p.safetensors": (safetensors_that(b"[" * 10_000), load),
    "q.safetensors": (lambda path, _: weights_of_a_model(path, objects=HUGE), load),
    "r.safetensors": (lambda path, _: weights_of_a_model(path, template_size=HUGE), load),
    "s.safetensors": (
        lambda path, _: weights_of_a_model(path, cnn_channels=MANY, cnn_strides=MANY),
        load,
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name: str, tmp_path: Path) -> None:
    write, read = HOSTILE[name]
    path = tmp_path / "given" / name
    path.parent.mkdir()
    write(path, Payload(tmp_path / "executed"))
    before, began = peak_mb(reset=True), time.process_time()
    refuse(lambda: read(path), str(path))
    assert sorted(tmp_path.rglob("*")) == [path.parent, path]
    assert peak_mb() - before < 4 * UNCHECKED_BYTES / 2**20 and time.process_time() - began < 20


@pytest.mark.parametrize("key", sorted(CHECKPOINT_KEYS))
def test_hostile_checkpoints_are_refused(key: str, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    contents = dict.fromkeys(CHECKPOINT_KEYS) | {key: Payload(tmp_path / "executed")}
    torch.save(contents, tmp_path / "checkpoints" / "step000000001.ckpt")
    with pytest.warns(UserWarning, match="corrupt"):
        assert newest_checkpoint(tmp_path) is None
    assert not (tmp_path / "executed").exists()


def test_no_source_file_loads_unsafely() -> None:
    for path in SOURCE.rglob("*.py"):
        assert UNSAFE.findall(path.read_text(encoding="utf-8")) == [], path
    for bad in ("torch.load(p)", "np.load(p, allow_pickle=True)", "joblib.load(p)"):
        assert UNSAFE.search(bad)


def test_the_page_runs_no_text_either() -> None:
    for path in (SOURCE / "explorer" / "page").iterdir():
        found = SCRIPT.findall(path.read_text(encoding="utf-8"))
        assert found == [], f"{path.name}: {found}"
