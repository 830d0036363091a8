"""Random damage to every kind of file: our own error or a valid result, in bounded time and
memory. What was of interest once is kept in tests/corpus and read again in every run.

The fast part runs in CI; `pytest -m slow` reads more than 100 000 files. With SCAE_CORPUS set to
a folder, the slow part also writes there one input for each new way to be refused.
"""

import hashlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from file_kinds import KINDS
from process_watch import HAS_PROC, forget_peak, largest_memory_mb
from scae.errors import ScaeError

CORPUS = Path(__file__).parent / "corpus"
SLOW = int(os.environ.get("SCAE_FUZZ", "4600"))
"""Files of each kind in the slow part; a fifth of that where a model has to be built."""
BUILT = ("config-points", "config-images", "weights", "weights-images")
SECONDS = 5
"""Processor time after which reading a file of a few kB counts as a hang."""
MEGABYTES = 300
"""No file of a few kB may take more: an image is decoded up to 64 million pixels."""
EXTREMES = [b"\0" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x80\0\0\0"]
EXTREMES += [b"-1", b"0", b"1e999", b"NaN", b"99999999999999999999", b"null", b"[[[[", b'"', b"\n"]


def mutations(seeds: list[bytes], rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """Truncations, flipped bytes, extreme numbers, copied and removed stretches."""
    for _ in range(count):
        # Half of the time a valid file: what is refused early hides what comes later.
        data = bytearray(seeds[0] if rng.random() < 0.5 else seeds[rng.integers(len(seeds))])
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(0, max(len(data), 1)))
            if rng.random() < 0.5:
                at = min(at, int(rng.integers(0, 256)))  # headers matter most
            length = int(rng.integers(1, 32))
            match rng.integers(0, 6):
                case 0:
                    del data[at:]
                case 1:
                    data[at : at + 1] = bytes([rng.integers(0, 256)])
                case 2:
                    extreme = EXTREMES[rng.integers(0, len(EXTREMES))]
                    data[at : at + len(extreme)] = extreme
                case 3:
                    del data[at : at + length]
                case 4:
                    data[at:at] = data[at : at + length]
                case _:
                    data[at : at + length] = rng.bytes(length)
        yield bytes(data)


@contextmanager
def no_hang() -> Iterator[None]:
    """Fail after SECONDS of this process's own time."""

    def hang(*_: object) -> None:
        raise AssertionError("reading took too long")

    before = signal.signal(signal.SIGVTALRM, hang)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def outcome(kind: str, path: Path) -> str:
    """`valid`, or the sentence of the refusal without its numbers; anything else fails."""
    with no_hang():
        try:
            KINDS[kind].read(path)
        except ScaeError as error:
            said = str(error)
            assert "\n" not in said and len(said) < 2000, said
            assert path.name in said or "model." in said, said
            plain = re.sub(r"\(.*\)|'.*'|`.*`", "", said.replace(str(path), "FILE"))
            return re.sub(r"[\d.\-]+", "#", plain)
    return "valid"


def fuzz(kind: str, folder: Path, seed: int, count: int) -> dict[str, bytes]:
    """The first input for each outcome."""
    path = folder / KINDS[kind].name
    KINDS[kind].write(path)
    assert outcome(kind, path) == "valid"
    kept = [file.read_bytes() for file in sorted((CORPUS / kind).glob("*"))]
    seeds = [path.read_bytes(), *kept]
    found: dict[str, bytes] = {}
    for data in mutations(seeds, np.random.default_rng(seed), count):
        path.write_bytes(data)
        said = outcome(kind, path)
        if said not in found or len(data) < len(found[said]):
            found[said] = data
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_corpus_gives_our_error_or_a_result(kind: str, tmp_path: Path) -> None:
    kept = sorted((CORPUS / kind).glob("*"))
    assert kept, f"tests/corpus/{kind} is empty"
    for file in kept:
        path = tmp_path / KINDS[kind].name
        path.write_bytes(file.read_bytes())
        outcome(kind, path)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_give_our_error(kind: str, tmp_path: Path) -> None:
    assert len(fuzz(kind, tmp_path, seed=1, count=60)) > 1


@pytest.mark.slow
@pytest.mark.skipif(not HAS_PROC, reason="measures memory through /proc")
def test_many_damaged_files_give_our_error(
    tmp_path: Path, reliability: Callable[..., None]
) -> None:
    outcomes: dict[str, int] = {}
    largest: dict[str, float] = {}
    cases = 0
    for kind in KINDS:
        folder = tmp_path / kind
        folder.mkdir()
        forget_peak()
        before = largest_memory_mb()
        count = SLOW // 5 if kind in BUILT else SLOW
        found = fuzz(kind, folder, seed=2, count=count)
        cases += count
        largest[kind] = round(largest_memory_mb() - before, 1)
        outcomes[kind] = len(found)
        if keep := os.environ.get("SCAE_CORPUS"):
            place = Path(keep) / kind
            place.mkdir(parents=True, exist_ok=True)
            for data in sorted(found.values(), key=len)[:8]:
                (place / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)
    reliability(
        "fuzz-files",
        cases=cases,
        kinds=len(KINDS),
        failures=0,
        different_outcomes=outcomes,
        largest_growth_mb=largest,
    )
    assert max(largest.values()) < MEGABYTES, largest
