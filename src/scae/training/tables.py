"""CSV files that grow by whole rows and can be cut back to a step."""

import csv
import io
import os
import warnings
from collections.abc import Mapping
from pathlib import Path

from scae.errors import ScaeError


class StepTable:
    """A CSV file whose first column is the step; its other columns come with the first row.

    A row is one write to a file opened for appending. A row that could not be written (full
    disk) is kept and written with the next one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] = []
        self._waiting: list[dict[str, float | int]] = []

    def resume(self, step: int) -> None:
        """Cut the file before the first row after `step`, or that is not a whole row.

        Cutting needs no free space and is one system call, so nothing can be lost by it.
        """
        self._waiting = []
        self._columns = []
        if not self.path.exists():
            return
        length = 0
        for line in self.path.read_bytes().splitlines(keepends=True):
            cells = line.decode(errors="replace").rstrip("\n").split(",")
            if not line.endswith(b"\n"):
                break
            if not self._columns:
                self._columns = cells
            elif len(cells) != len(self._columns) or not _up_to(cells[0], step):
                break
            length += len(line)
        os.truncate(self.path, length)

    def append(self, row: Mapping[str, float | int]) -> None:
        """Add a row; `row["step"]` is its key."""
        if not self._columns:
            self._columns = list(row)
        unknown = set(row) - set(self._columns)
        if unknown:
            raise ScaeError(
                f"{self.path} has no column {sorted(unknown)[0]!r}: it comes from another "
                "version of scae; train in a new folder."
            )
        self._waiting.append(dict(row))
        try:
            self._write()
        except OSError as error:
            warnings.warn(
                f"{self.path} could not be written ({error.strerror or error}); the row is kept "
                "and written later. Free some space on the disk.",
                stacklevel=2,
            )

    def sync(self) -> None:
        """Bring written rows to the disk, so that a checkpoint never knows more than they do."""
        if self.path.exists():
            with open(self.path, "rb") as file:
                os.fsync(file.fileno())

    def _write(self) -> None:
        new = not self.path.exists() or self.path.stat().st_size == 0
        text = io.StringIO()
        writer = csv.DictWriter(text, self._columns, restval="", lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows({k: _digits(v) for k, v in row.items()} for row in self._waiting)
        with open(self.path, "ab", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            data = text.getvalue().encode()
            try:
                written = file.write(data)
                if written != len(data):
                    raise OSError(None, "disk full")
            except OSError:
                file.truncate(size)
                raise
        self._waiting = []


def read_table(path: Path) -> dict[str, list[float]]:
    """Columns of `metrics.csv` or `diagnostics.csv`; an empty cell is NaN."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, strict=True))
        columns = list(rows[0]) if rows else []
        return {c: [float(row[c]) if row[c] else float("nan") for row in rows] for c in columns}
    except OSError as error:
        raise ScaeError(f"{path} cannot be read ({error.strerror}); expected a CSV file.") from None
    except (ValueError, TypeError, csv.Error) as error:
        raise ScaeError(f"{path} is not a table of numbers ({error}).") from None


def _digits(value: float | int) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def _up_to(cell: str, step: int) -> bool:
    return cell.isascii() and cell.isdigit() and len(cell) < 19 and int(cell) <= step
