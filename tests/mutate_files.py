"""Damage small files of every format that is read: each ends in one sentence or is read right.

`python tests/mutate_files.py --files 100000 --out results/reliability/mutated-files.json` tries
that many; `test_mutated_files.py` tries a few. A reader may raise `ScaeError` and nothing else,
within TIMEOUT seconds and MAX_MB.
"""

import argparse
import gzip
import io
import json
import random
import re
import shutil
import signal
import struct
import tarfile
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import data_files
from scae import config
from scae.api.loading import load
from scae.config import SetTransformerConfig
from scae.data import readers
from scae.data.folder import MAX_PIXELS, read_image
from scae.data.points import load_points
from scae.errors import ScaeError
from scae.models import build
from scae.presets import preset
from scae.training.run_folder import environment, newest_checkpoint
from scae.weights_file import save_weights

TIMEOUT = 10
MAX_MB = 4 * 3 * MAX_PIXELS / 1e6
"""Four times the largest image that is accepted, in RGB; other formats stay far below."""
PICTURES = {"png": "RGBA", "jpg": "RGB", "gif": "L", "bmp": "RGB", "ppm": "RGB"}
PICTURES |= {"webp": "RGBA", "tif": "RGB"}
TOKENS = (b"-1", b"1e400", b"NaN", b"null", b"[]", b"{}", b'"', b"0.5")
NUMBERS = (0, 1, 2**7, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)

Table = dict[str, dict[str, float]]
Check = Callable[[Any], bool]


class Hang(BaseException):
    """Not an `Exception`, so that no reader can take it for a bad file."""


def images_are_right(found: Any) -> bool:
    images, labels = found
    return images.dtype == np.uint8 and images.ndim == 4 and 0 <= labels.min() <= labels.max() <= 9


def scenes_are_right(found: Any) -> bool:
    return bool(found.points.isfinite().all()) and set(found.presence.unique().tolist()) <= {0, 1}


CHECKPOINT = {
    "state_dict": {"weight": torch.arange(6.0)},
    "optimizer_states": [{"state": {0: {"step": torch.ones(1)}}}],
    "lr_schedulers": [],
    "loops": {"step": 3},
    "skipped_steps": (0, 0),
}


def read_checkpoint(path: Path) -> Any:
    """As resuming does it: the newest checkpoint that can be read is loaded."""
    folder = path.parent / "checkpoints"
    folder.mkdir(exist_ok=True)
    shutil.copy(path, folder / "step000000001.ckpt")
    found = newest_checkpoint(path.parent)
    if found is None:
        raise ScaeError("corrupt")
    return torch.load(found, map_location="cpu", weights_only=True)["state_dict"]


def write_whole_files(folder: Path) -> None:
    """Small files of every format."""
    pixels = np.random.default_rng(0).integers(0, 256, (4, 28, 28)).astype(np.uint8)
    idx = data_files.idx_bytes(pixels)
    (folder / "idx").write_bytes(idx)
    (folder / "idx.gz").write_bytes(gzip.compress(idx))
    for zipped in (True, False):
        data_files.write_svhn(folder, 2, zipped)
        (folder / "svhn" / "train_32x32.mat").rename(folder / f"svhn{zipped:d}.mat")
    data_files.write_affnist(folder / "affnist.mat", 2)
    (folder / "1.bin").write_bytes(data_files.cifar_bytes(1))
    with tarfile.open(folder / "1.tar.gz", "w:gz") as tar:
        tar.add(folder / "1.bin", "data_batch_1.bin")
    np.save(folder / "a.npy", pixels)
    np.savez(folder / "a.npz", images=pixels, labels=[0, 1, 2, 3])
    np.savez_compressed(folder / "z.npz", x_train=pixels / 255.0)
    np.savez(folder / "p.npz", points=pixels[:, :, :2] / 9.0, presence=np.ones((4, 28)))
    lines = [f"{i // 3},{i},{i * i},1\n" for i in range(9)]
    (folder / "p.csv").write_text("".join(["scene,x,y,object\n", *lines]))
    for suffix, mode in PICTURES.items():
        Image.fromarray(pixels[0]).convert(mode).save(folder / f"i.{suffix}")
    encoder = SetTransformerConfig(layers=1, heads=1, width=2, output=2)
    model = config.ConstellationConfig(1, 4, 2, "capsules", encoder, 2, 2)
    experiment = config.ConstellationExperiment("small", "", model)
    save_weights(build(model), experiment, folder / "a.safetensors")
    torch.save(CHECKPOINT, folder / "a.ckpt")
    (folder / "a.json").write_text(json.dumps(config.to_json(preset("mnist"))))


# Kind of file: names of whole files, their reader, and what holds for whatever it returns.
READERS: dict[str, tuple[str, Callable[[Path], Any], Check]] = {
    "idx": ("idx idx.gz", lambda path: readers.read_idx(path, 3), lambda found: found.ndim == 3),
    "mat": (
        "svhn0.mat svhn1.mat",
        lambda path: readers.read_svhn([path], "train"),
        images_are_right,
    ),
    "affnist": (
        "affnist.mat",
        lambda path: readers.read_affnist([path], "train"),
        images_are_right,
    ),
    "cifar10": (
        "1.bin 1.tar.gz",
        lambda path: readers.read_cifar10([path], "train"),
        images_are_right,
    ),
    "npz, npy": (
        "a.npy a.npz z.npz",
        lambda path: readers.read_array_images(path, "train"),
        lambda found: found.images.dtype == torch.uint8 and found.images.ndim == 4,
    ),
    "points": ("p.npz", load_points, scenes_are_right),
    "csv": ("p.csv", load_points, scenes_are_right),
    "images": (
        " ".join(f"i.{suffix}" for suffix in PICTURES),
        read_image,
        lambda found: found.dtype == np.uint8 and found.shape[0] in (1, 3),
    ),
    "safetensors": (
        "a.safetensors",
        load,
        lambda found: found.model.config == found.experiment.model,
    ),
    "checkpoint": ("a.ckpt", read_checkpoint, lambda found: isinstance(found, dict)),
    "config": (
        "a.json",
        lambda path: config.from_json(path.read_bytes(), str(path)),
        lambda found: config.from_json(json.dumps(config.to_json(found)), "again") == found,
    ),
}


def damage(data: bytes, rng: random.Random) -> bytes:
    """Change, cut, insert, repeat or remove bytes at one to four places."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        # Headers are short, so half of all changes are at the beginning.
        start = rng.randrange(len(out) + 1 if rng.random() < 0.5 else 64)
        length, number = rng.choice((1, 2, 4, 8, 64)), rng.choice(NUMBERS)
        pieces = (
            rng.randbytes(length),
            number.to_bytes(8, rng.choice(("big", "little")))[:length],
            out[start : start + length] * rng.randint(0, 8),
            str(number).encode(),
        )
        piece = rng.choice(pieces)
        # To the end (cut), nothing (insert) or as many bytes as are written (change).
        replaced = rng.choice((len(out), 0, len(piece), len(piece)))
        out[start : start + replaced] = b"" if replaced == len(out) else piece
    return bytes(out)


def damage_text(data: bytes, rng: random.Random) -> bytes:
    """Replace one to four numbers of a text by others or by something else."""
    for _ in range(rng.randint(1, 4)):
        if found := list(re.finditer(rb"-?\d+(\.\d+)?", data)):
            place = rng.choice(found)
            piece = rng.choice((*TOKENS, str(rng.choice(NUMBERS)).encode()))
            data = data[: place.start()] + piece + data[place.end() :]
    return data


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Damage the file, what is inside of a compressed one, or the numbers of a text."""
    if rng.random() < 0.5:
        return damage(data, rng)
    if data[8:9] == b"{":  # safetensors: length of the header, header, numbers
        length = struct.unpack("<Q", data[:8])[0]
        header = damage_text(data[8 : 8 + length], rng)
        return struct.pack("<Q", len(header)) + header + data[8 + length :]
    if data[:1] == b"{" or data[:5] == b"scene":
        return damage_text(data, rng)
    if data[:2] == b"\x1f\x8b":
        return gzip.compress(damage(gzip.decompress(data), rng), 1)
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as old:
            members = {name: old.read(name) for name in old.namelist()}
        name = rng.choice(list(members))
        members[name] = damage(members[name], rng)

        with zipfile.ZipFile(file := io.BytesIO(), "w") as new:
            for member, content in members.items():
                new.writestr(member, content)
        return file.getvalue()
    return damage(data, rng)


def peak_mb(reset: bool = False) -> float:
    """Most memory held since the last reset; Linux only."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    text = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]


def _hang(*_: object) -> None:
    raise Hang


def run(count: int, seed: int = 0, out: Path | None = None) -> tuple[Table, list[str]]:
    """Read `count` damaged files: how each reader did, and what went wrong."""
    rng, table, problems, began = random.Random(seed), {}, [], time.monotonic()
    signal.signal(signal.SIGPROF, _hang)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_whole_files(folder)
        whole = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        for kind, (files, read, is_right) in READERS.items():
            for file in files.split():
                if not is_right(read(folder / file)):
                    raise AssertionError(f"{file} is not read even when whole")
            table[kind] = dict.fromkeys(("refused", "read", "seconds", "mb"), 0.0)
        for number in range(count):
            kind = list(READERS)[number % len(READERS)]
            (files, read, is_right), row = READERS[kind], table[kind]
            path = folder / rng.choice(files.split())
            path.write_bytes(mutate(whole[path.name], rng))
            before, begin = peak_mb(reset=True), time.process_time()
            signal.setitimer(signal.ITIMER_PROF, TIMEOUT)  # of computing: the machine may be busy
            try:
                problem = None if is_right(read(path)) else "was read wrong"
                row["read"] += 1
            except ScaeError as error:
                row["refused"] += 1
                problem = "has a message of several lines" if "\n" in str(error) else None
            except (Exception, Hang) as error:
                problem = f"raised {type(error).__name__}: {error}"
            signal.setitimer(signal.ITIMER_PROF, 0)
            row["seconds"] = max(row["seconds"], round(time.process_time() - begin, 2))
            row["mb"] = max(row["mb"], used := round(peak_mb() - before, 1))
            if problem is None and used > MAX_MB:
                problem = f"took {used:.0f} MB"
            if problem is not None:
                keep = Path(tempfile.gettempdir()) / f"mutated-{number}-{path.name}"
                shutil.copy(path, keep)
                problems.append(f"{keep}: {problem}"[:300])
            if out and ((number + 1) % 1000 == 0 or number + 1 == count):
                write_record(
                    out,
                    command="python tests/mutate_files.py --files 100000",
                    files=number + 1,
                    failures=problems,
                    seconds=round(time.monotonic() - began),
                    kinds=table,
                )
    return table, problems


def write_record(out: Path, **found: Any) -> None:
    """What was measured, with date, machine and commit."""
    made_with = environment()
    about = {"date": datetime.now(UTC).date().isoformat()}
    about |= {key: made_with[key] for key in ("machine", "commit")}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found | about, indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON file, written every 1000 files")
    given = parser.parse_args()
    rows, failures = run(given.files, given.seed, given.out)
    for kind, row in rows.items():
        counts = f"{row['refused']:7.0f} refused {row['read']:7.0f} read"
        print(f"{kind:12s} {counts}, at most {row['seconds']:.2f} s and {row['mb']:.0f} MB")
    raise SystemExit("\n".join(failures) or None)
