"""A version of the code that changes exactly when numbers may: a hash of its sources."""

import hashlib
from functools import cache
from pathlib import Path

import scae

# What only draws, prints, serves or measures cannot change the score of a trained cell.
WITHOUT_INFLUENCE = frozenset(
    (
        *("api", "bench", "cli", "estimator", "explorer", "export", "figures", "hub", "report"),
        "reproduce",
    )
)


@cache
def code_version() -> str:
    """Hash of the sources that train and score, and of the package's version."""
    return hash_sources(Path(scae.__file__).parent, scae.__version__)


def hash_sources(folder: Path, version: str) -> str:
    """Hash of the Python files in a folder, but for the packages without influence."""
    digest = hashlib.sha256(version.encode())
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if name.parts[0].removesuffix(".py") not in WITHOUT_INFLUENCE:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    # How a cell is trained and scored is decided here, whatever the rest of this package does.
    cell = folder / "reproduce" / "cell.py"
    if cell.is_file():
        digest.update(cell.read_bytes())
    return digest.hexdigest()
