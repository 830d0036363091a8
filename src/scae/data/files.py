"""Reading files that may be missing, damaged or hostile, in bounded memory.

Every reader of binary data sets goes through here: nothing is decompressed beyond what a
file's own header declares, and every failure is one sentence that names the file.
"""

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import numpy as np
from jaxtyping import UInt8

from scae.errors import ScaeError

# Deflate cannot shrink data by more than this factor; a header that claims more is lying.
MAX_DEFLATE_RATIO = 1032
CHUNK = 1 << 20
# What zipfile raises on damaged or encrypted archives (bad names are ValueErrors).
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, RuntimeError, ValueError)


def damaged(path: Path, expected: str, found: str) -> ScaeError:
    """The error for a file whose contents are not what they should be."""
    return ScaeError(f"File {path} is not {expected}: {found}; replace it with a whole copy.")


def looks_like_html(start: bytes) -> bool:
    """Whether a file's first bytes are those of a web page, such as a saved error page."""
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")[:15].lower()
    return text.startswith((b"<!doctype", b"<html", b"<head", b"<?xml"))


def check_start(path: Path, start: bytes, expected: str) -> None:
    """Refuse empty files and web pages with a sentence of their own."""
    if not start:
        raise damaged(path, expected, "it is empty")
    if looks_like_html(start):
        raise damaged(path, expected, "it is a web page, probably a saved error message")


@contextmanager
def open_binary(path: Path, expected: str) -> Iterator["Reader"]:
    """Open a plain or gzipped file, told apart by content and not by name."""
    try:
        with open(path, "rb") as raw:
            start = raw.read(64)
            check_start(path, start, expected)
            raw.seek(0, io.SEEK_END)
            stored = raw.tell()
            raw.seek(0)
            if start[:2] == b"\x1f\x8b":
                with gzip.GzipFile(fileobj=raw) as unzipped:
                    yield Reader(path, unzipped, stored * MAX_DEFLATE_RATIO, expected)
            elif path.suffix == ".gz":
                raise damaged(path, expected, "it is named .gz but is not gzipped")
            else:
                yield Reader(path, raw, stored, expected)
    except FileNotFoundError:
        raise ScaeError(f"File {path} does not exist.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, expected, reason(error)) from None


def fill(data: UInt8[np.ndarray, " count"], file: io.BufferedIOBase) -> int:
    """Read into an array and return how much there was.

    In pieces, since decompressors hold a second copy of what they are asked for at a time.
    """
    view, done = data.data, 0
    while done < len(view) and (piece := file.read(min(CHUNK, len(view) - done))):
        view[done : done + len(piece)] = piece
        done += len(piece)
    return done


class Reader:
    """Reads exactly what is asked for, or fails with the file's name."""

    def __init__(self, path: Path, handle: io.BufferedIOBase, most: int, expected: str):
        self.path, self._handle, self._most, self._expected = path, handle, most, expected

    def take(self, count: int) -> UInt8[np.ndarray, " count"]:
        """The next `count` bytes; allocates nothing when the file cannot hold them."""
        if count > self._most:
            raise self.fail(f"its header asks for {count} bytes, more than the file can hold")
        data = np.empty(count, np.uint8)
        if (done := fill(data, self._handle)) != count:
            raise self.fail(f"it ends after {done} of {count} bytes")
        return data

    def take_up_to(self, count: int) -> UInt8[np.ndarray, " taken"]:
        """All that follows, but at most `count` bytes, for formats without a length."""
        data = bytearray()
        while chunk := self._handle.read(min(count - len(data), CHUNK)):
            data += chunk
        return np.frombuffer(data, np.uint8)

    def end(self) -> None:
        """Check that nothing follows; for gzip this also verifies the checksum."""
        if self._handle.read(1):
            raise self.fail("it is longer than it should be")

    def fail(self, found: str) -> ScaeError:
        return damaged(self.path, self._expected, found)


@contextmanager
def open_zip(path: Path, expected: str) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; whatever the zip format can do wrong becomes our error."""
    try:
        with open(path, "rb") as raw:
            check_start(path, raw.read(64), expected)
            raw.seek(0)
            with zipfile.ZipFile(raw) as archive:
                yield archive
    except FileNotFoundError:
        raise ScaeError(f"File {path} does not exist.") from None
    except (*ZIP_ERRORS, OSError, EOFError) as error:
        raise damaged(path, expected, reason(error)) from None


def check_entry(path: Path, entry: zipfile.ZipInfo, expected: str) -> None:
    """Refuse an entry that points out of its archive or claims more than it can hold."""
    place = PurePosixPath(entry.filename)
    if not entry.filename.isprintable():  # it would end up in a message on someone's terminal
        raise damaged(path, expected, "it has an entry with an unreadable name")
    if place.is_absolute() or ".." in place.parts or "\\" in entry.filename:
        raise ScaeError(
            f"Archive {path} has an entry {entry.filename!r} that points outside of it; it is not "
            "the official archive."
        )
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise damaged(path, expected, f"{place} is compressed in an unusual way")
    if entry.file_size > MAX_DEFLATE_RATIO * max(entry.compress_size, 1):
        raise damaged(path, expected, f"{place} claims more than it can hold")


def plain_or_gz(folder: Path, stem: str) -> Path | None:
    """The file `stem` or `stem.gz` in a folder, if either is there."""
    for name in (stem, stem + ".gz"):
        if (folder / name).is_file():
            return folder / name
    return None


def check_labels(path: Path, labels: np.ndarray, classes: int, count: int) -> None:
    """Labels must be whole numbers in [0, classes), one for each of `count` images."""
    if labels.shape != (count,):
        raise ScaeError(f"File {path} has {labels.size} labels for {count} images.")
    if count and not (labels.min() >= 0 and labels.max() < classes):
        worst = labels.max() if labels.max() >= classes else labels.min()
        raise ScaeError(f"File {path} has a label {worst}; expected 0 to {classes - 1}.")


def reason(error: Exception) -> str:
    """An error of the system or a library in a few words, without path or line breaks."""
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(words).splitlines()[0].rstrip(".")[:200]
