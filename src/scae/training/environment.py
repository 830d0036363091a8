"""What a run was made with: versions, machine and commit, for `environment.json`."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import scae

_PACKAGES = ("torch", "lightning", "numpy", "scipy", "scikit-learn", "safetensors")


def describe() -> dict[str, Any]:
    """Versions, machine and commit. No host or user names: run folders get published."""
    versions: dict[str, str | None] = {"scae": scae.__version__}
    versions["python"] = platform.python_version()
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions,
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count(),
            "torch_threads": torch.get_num_threads(),
            "memory_gb": _memory_gb(),
            "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        },
        "commit": _commit(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except (OSError, UnicodeDecodeError):
        pass
    return platform.processor() or "unknown"


def _memory_gb() -> float | None:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    return round(total / 2**30, 1)


def _commit() -> str | None:
    """Commit of the source tree, `+` when it has uncommitted changes; None when installed."""
    folder = Path(scae.__file__).parent
    if not (folder.parents[1] / ".git").exists():
        return None

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):
        return None
