"""Files that are either complete or not there, whatever stops the process."""

import contextlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

PARTIAL_SUFFIX = ".partial"


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that readers see the old content or the new one, never a part.

    The bytes reach the disk in a temporary file of the same folder before it is renamed, so a
    power cut cannot leave an empty file behind. When writing fails, the old file stays.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}")
    try:
        with open(partial, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """`write_bytes` for UTF-8 text."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """`write_bytes` for a JSON value, indented for people to read."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty where there is no file."""
    found: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
    return found


def remove_partial(folder: Path) -> None:
    """Remove what writers killed in the middle left in a folder that nobody else writes to."""
    for path in folder.glob(f".*{PARTIAL_SUFFIX}"):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
