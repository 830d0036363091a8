"""When, on what and with which code a number was measured."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime

import torch

from scae.training import environment


@dataclass(frozen=True)
class Provenance:
    """What a benchmark needs beside its numbers to be believed."""

    date: str
    processor: str
    cores: int
    threads: int
    memory_gb: float | None
    load_at_start: float | None
    """Processes wanting a core in the minute before; well above 0 the machine was not idle."""
    torch: str
    scae: str
    commit: str | None
    """Commit of the source tree, `+` when it had uncommitted changes."""

    @property
    def text(self) -> str:
        """One line for people."""
        commit = f", commit {self.commit[:10]}" if self.commit else ""
        load = "" if self.load_at_start is None else f", load {self.load_at_start:.1f} at the start"
        return (
            f"{self.date}: {self.processor}, {self.cores} cores, {self.threads} threads, "
            f"torch {self.torch}, scae {self.scae}{commit}{load}"
        )


def provenance() -> Provenance:
    """The machine and code of this process, now."""
    found = environment.describe()
    machine, versions = found["machine"], found["versions"]
    return Provenance(
        date=datetime.now(UTC).date().isoformat(),
        processor=machine["processor"],
        cores=machine["cores"],
        threads=torch.get_num_threads(),
        memory_gb=machine["memory_gb"],
        load_at_start=_load(),
        torch=versions["torch"],
        scae=versions["scae"],
        commit=found["commit"],
    )


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None
