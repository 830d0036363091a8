"""Every kind of file the package reads: its reader and a small valid example."""

import gzip
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from PIL import Image
from scipy.io import savemat

import data_files
from scae import config_json, weights_file
from scae.api import load_source
from scae.data import load_points
from scae.data.affnist import read_affnist
from scae.data.arrays import load_array_images
from scae.data.cifar10 import read_archive, read_batch
from scae.data.folders import load_folder, read_image
from scae.data.idx import read_idx
from scae.data.mat import read_mat
from scae.data.svhn import read_svhn
from scae.models import build
from scae.training import read_table
from scae.training.checkpoints import Checkpoint, CheckpointStore, read_checkpoint
from training_runs import images_experiment, points_experiment

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (2, 6, 5)).astype(np.uint8)


@dataclass(frozen=True)
class Kind:
    """A name the file has to have, what reads it, and what writes a valid one."""

    name: str
    read: Callable[[Path], object]
    write: Callable[[Path], object]


def _zip_of(write: Callable[[Path], object], inner: str) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        write(path.with_name(inner))
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(path.with_name(inner), inner)

    return make


def _write_svhn(path: Path) -> None:
    pixels = np.zeros((32, 32, 3, 2), np.uint8)
    savemat(path, {"X": pixels, "y": np.ones((2, 1))}, do_compression=True)


def _write_tar(path: Path) -> None:
    batch = path.with_name("test_batch.bin")
    batch.write_bytes(data_files.cifar_bytes(1))
    with tarfile.open(path, "w:gz") as tar:
        tar.add(batch, "cifar-10-batches-bin/test_batch.bin")


def _write_checkpoint(path: Path) -> None:
    tensors = {"model.a": torch.arange(3.0), "optimizer.0.b": torch.zeros(2, 2)}
    folder = path.with_name("checkpoints")
    folder.mkdir(exist_ok=True)
    CheckpointStore(folder, 1).save(Checkpoint(7, tensors, {"seconds": 1.5, "data": "x"}))
    shutil.move(folder / "step000000007.safetensors", path)


def _write_weights(path: Path, points: bool) -> None:
    experiment = points_experiment() if points else images_experiment()
    weights_file.save_weights(build(experiment.model), experiment, path)


def _write_config(path: Path, points: bool) -> None:
    experiment = points_experiment() if points else images_experiment()
    path.write_text(json.dumps(config_json.to_json(experiment)))


def _read_config(path: Path) -> object:
    return build(config_json.parse(path.read_bytes(), str(path)).model)


KINDS: dict[str, Kind] = {
    "idx": Kind(
        "a-idx3-ubyte",
        lambda p: read_idx(p, 3),
        lambda p: p.write_bytes(data_files.idx_bytes(GREY)),
    ),
    "idx-gz": Kind(
        "a-idx3-ubyte.gz",
        lambda p: read_idx(p, 3),
        lambda p: p.write_bytes(gzip.compress(data_files.idx_bytes(GREY))),
    ),
    "mat": Kind(
        "plain.mat",
        read_mat,
        lambda p: savemat(p, {"a": np.eye(2), "s": {"b": np.arange(3), "c": "x"}, "o": [[1, "t"]]}),
    ),
    "svhn": Kind("train_32x32.mat", lambda p: read_svhn(p, "train"), _write_svhn),
    "affnist": Kind(
        "test.mat",
        lambda p: read_affnist([p], "test"),
        lambda p: data_files.write_affnist(p, 2),
    ),
    "affnist-zip": Kind(
        "test.mat.zip",
        lambda p: read_affnist([p], "test"),
        _zip_of(lambda p: data_files.write_affnist(p, 2), "test.mat"),
    ),
    "cifar": Kind(
        "data_batch_1.bin.gz",
        read_batch,
        lambda p: p.write_bytes(gzip.compress(data_files.cifar_bytes(1))),
    ),
    "cifar-tar": Kind(
        "cifar-10-binary.tar.gz", lambda p: read_archive(p, ["test_batch.bin"]), _write_tar
    ),
    "npz": Kind(
        "images.npz",
        lambda p: load_array_images(p, "train"),
        lambda p: np.savez_compressed(p, images=GREY, labels=np.arange(2)),
    ),
    "npy": Kind(
        "images.npy", lambda p: load_array_images(p, "train"), lambda p: np.save(p, GREY / 255.0)
    ),
    "png": Kind("a.png", read_image, lambda p: Image.fromarray(GREY[0]).save(p)),
    "jpg": Kind("a.jpg", read_image, lambda p: Image.fromarray(GREY[0]).save(p)),
    "gif": Kind("a.gif", read_image, lambda p: Image.fromarray(GREY[0]).save(p)),
    "tif": Kind("a.tif", read_image, lambda p: Image.fromarray(GREY[0]).save(p)),
    "webp": Kind("a.webp", read_image, lambda p: Image.fromarray(GREY[0]).save(p)),
    "folder": Kind(
        "b.png",
        lambda p: load_folder(p.parent, "train", 4),
        lambda p: Image.fromarray(GREY[0]).convert("P").save(p),
    ),
    "csv": Kind(
        "points.csv",
        load_points,
        lambda p: p.write_text("scene,x,y,object\n0,1,2,0\n0,3,1.5,1\n1,-1,2e3,0\n"),
    ),
    "points": Kind(
        "points.npz",
        load_points,
        lambda p: np.savez(p, points=RNG.standard_normal((2, 3, 2)), presence=np.ones((2, 3))),
    ),
    "metrics": Kind(
        "metrics.csv", read_table, lambda p: p.write_text("step,loss\n1,0.5\n2,nan\n3,1e-9\n")
    ),
    "config-points": Kind("config.json", _read_config, lambda p: _write_config(p, True)),
    "config-images": Kind("config.json", _read_config, lambda p: _write_config(p, False)),
    "weights": Kind("w.safetensors", load_source, lambda p: _write_weights(p, True)),
    "weights-images": Kind("w.safetensors", load_source, lambda p: _write_weights(p, False)),
    "checkpoint": Kind("step000000007.safetensors", read_checkpoint, _write_checkpoint),
    "safetensors": Kind(
        "t.safetensors",
        weights_file.read_tensors,
        lambda p: safetensors.torch.save_file({"a": torch.arange(6.0), "b": torch.eye(2)}, p),
    ),
}
