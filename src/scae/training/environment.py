"""What a run was made with: versions, machine and commit, for `environment.json`."""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import scae

PACKAGES = ("torch", "lightning", "numpy", "scipy", "scikit-learn", "safetensors")


def describe() -> dict[str, Any]:
    """Versions, machine and commit. No host or user names: run folders get published."""
    versions = {package: metadata.version(package) for package in PACKAGES}
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"scae": scae.__version__, "python": platform.python_version(), **versions},
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count(),
            "torch_threads": torch.get_num_threads(),
            "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        },
        "commit": _commit(),
    }


def peak_memory_mb() -> int | None:
    """Most memory that this process has held; None on Windows, which does not tell."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except (OSError, UnicodeDecodeError):
        pass
    return platform.processor() or "unknown"


def _commit() -> str | None:
    """Commit of the source tree, `+` when it has uncommitted changes; None when installed."""
    folder = Path(scae.__file__).parents[2]
    if not (folder / ".git").exists():
        return None
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=40", "--dirty=+"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
