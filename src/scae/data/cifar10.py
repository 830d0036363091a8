"""CIFAR-10, binary version: records of one label byte and 3 x 32 x 32 pixel bytes.

Batches are read plain, gzipped, or straight from the official `cifar-10-binary.tar.gz`,
which is never unpacked to disk.
"""

import io
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import cast

import numpy as np
import torch
from jaxtyping import UInt8

from scae.data.files import check_labels, check_start, damaged, fill, open_binary, reason
from scae.data.interface import ImageData
from scae.errors import ScaeError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
BATCHES = {
    "train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
    "test": ("test_batch.bin",),
}
COUNTS = {"train": 50_000, "test": 10_000}
ARCHIVE = "cifar-10-binary.tar.gz"
RECORD = 1 + 3 * 32 * 32
RECORDS_PER_BATCH = 10_000
EXPECTED = "a CIFAR-10 binary batch"


def read_batch(path: Path) -> UInt8[np.ndarray, "records 3073"]:
    """Records of one batch file; at most the 10 000 that a batch has are ever read."""
    with open_binary(path, EXPECTED) as reader:
        data = reader.take_up_to(RECORD * RECORDS_PER_BATCH)
        reader.end()
    return _records(path, data)


def read_archive(path: Path, names: Sequence[str]) -> list[UInt8[np.ndarray, "records 3073"]]:
    """Records of the named batches of the official archive."""
    found: dict[str, np.ndarray] = {}
    try:
        with open(path, "rb") as raw:
            check_start(path, raw.read(64), "a tar archive")
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                place = PurePosixPath(member.name)
                if place.is_absolute() or ".." in place.parts:
                    raise ScaeError(
                        f"Archive {path} has an entry {member.name!r} that points outside of it; "
                        "it is not the official archive."
                    )
                if not member.isreg() or place.name not in names:
                    continue
                if member.size > RECORD * RECORDS_PER_BATCH:
                    raise damaged(path, "the CIFAR-10 archive", f"{place.name} is too large")
                handle = archive.extractfile(member)
                assert handle is not None  # regular files always have one
                data = np.empty(member.size, np.uint8)
                if fill(data, cast(io.BufferedIOBase, handle)) != member.size:
                    raise damaged(path, "the CIFAR-10 archive", f"{place.name} is cut short")
                found[place.name] = _records(path / place.name, data)
    except FileNotFoundError:
        raise ScaeError(f"File {path} does not exist.") from None
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as error:
        raise damaged(path, "the CIFAR-10 archive", reason(error)) from None
    if absent := [name for name in names if name not in found]:
        raise damaged(path, "the CIFAR-10 archive", f"it lacks {', '.join(absent)}")
    return [found[name] for name in names]


def collect(records: Sequence[np.ndarray], split: str) -> ImageData:
    """Images and labels of a split from the records of its batches."""
    every = np.concatenate(records)
    return ImageData(
        torch.from_numpy(every[:, 1:].reshape(-1, 3, 32, 32)),
        torch.from_numpy(every[:, 0].astype(np.int64)),
        "cifar10",
        split,
        classes=CLASSES,
        expected=COUNTS[split],
    )


def _records(path: Path, data: np.ndarray) -> UInt8[np.ndarray, "records 3073"]:
    if len(data) == 0 or len(data) % RECORD:
        raise damaged(path, EXPECTED, f"{len(data)} bytes are no whole number of {RECORD}")
    records = data.reshape(-1, RECORD)
    check_labels(path, records[:, 0], 10, len(records))
    return records
