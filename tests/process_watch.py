"""Watches another process through /proc: memory, file handles, processor time."""

import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HAS_PROC = Path("/proc/self/statm").exists()
SETTLING = 0.2
"""Share of a watch, at its start, in which caches fill and compilers run; not judged."""
LONGEST_GAP = 5.0
WINDOWS = 12
"""Stretches of which the 10th percentile of the memory is kept."""


def memory_mb(pid: int) -> float:
    """Resident memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def handles(pid: int) -> int:
    """Open files, sockets and pipes."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def cpu_seconds(pid: int) -> float:
    """Processor time so far, which neighbours on the machine hardly change."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def largest_memory_mb() -> float:
    """Peak of this process's resident memory since `forget_peak`."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1e3 if found else 0.0


def forget_peak() -> None:
    """Start a new peak at what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """Median of the slopes between all pairs (Theil and Sen), which single outliers leave alone."""
    i, j = np.triu_indices(len(x), 1)
    return float(np.median((y[j] - y[i]) / (x[j] - x[i]))) if len(i) else 0.0


def slope_error(x: np.ndarray, y: np.ndarray) -> float:
    """Standard error of a fitted slope: what the scatter of the points alone would give."""
    if len(x) < 4:
        return 0.0
    left = y - np.polyval(np.polyfit(x, y, 1), x)
    return float(np.sqrt((left @ left) / (len(x) - 2) / ((x - x.mean()) ** 2).sum()))


@dataclass
class Watch:
    """Rows of (seconds, MB, handles, processor seconds, work done) of a process."""

    pid: int
    rows: list[tuple[float, float, float, float, float]] = field(default_factory=list)
    seconds: float = 0.0
    """Time watched; when the whole machine is stopped for a while, that does not count."""
    _last: float = field(default_factory=time.perf_counter)

    def look(self, done: float) -> None:
        """Note the process's state after `done` units of work (steps, requests)."""
        now = time.perf_counter()
        self.seconds += min(now - self._last, LONGEST_GAP)
        self._last = now
        state = memory_mb(self.pid), float(handles(self.pid)), cpu_seconds(self.pid)
        self.rows.append((self.seconds, *state, done))

    def figures(self) -> dict[str, Any]:
        """Growth and slow-down after the settling time."""
        at, memory, open_files, cpu, done = np.array(self.rows).T
        kept = at >= SETTLING * at[-1]
        at, memory, open_files, cpu, done = (x[kept] for x in (at, memory, open_files, cpu, done))
        windows = np.array_split(np.arange(len(at)), min(WINDOWS, len(at)))
        # A step's temporary tensors come and go, and now and then the allocator gives some back;
        # what is never given back raises the low end.
        level = np.array([np.quantile(memory[w], 0.1) for w in windows])
        middle = np.array([at[w].mean() for w in windows])
        quarter = max(1, len(at) // 4)

        def cost(rows: slice) -> float:
            spent, work = cpu[rows], done[rows]
            return float((spent[-1] - spent[0]) / max(work[-1] - work[0], 1))

        first, last = cost(slice(0, quarter + 1)), cost(slice(-quarter - 1, None))
        return {
            "minutes": round(float(self.rows[-1][0]) / 60, 2),
            "work": int(self.rows[-1][4]),
            "mb_level": [round(float(x), 1) for x in level],
            "mb_largest": round(float(memory.max()), 1),
            "mb_per_minute": round(60 * slope(middle, level), 4),
            "mb_per_minute_error": round(60 * slope_error(middle, level), 4),
            "handles_first": int(open_files[0]),
            "handles_last": int(open_files[-1]),
            "handles_largest": int(open_files.max()),
            "cpu_ms_each_first_quarter": round(1e3 * first, 3),
            "cpu_ms_each_last_quarter": round(1e3 * last, 3),
            "slow_down": round(last / first, 3) if first else None,
        }
