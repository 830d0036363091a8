"""Fast CPU paths: threads for machine code made by numba, and memory that is kept."""

import ctypes
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

import torch

# Parameters of glibc's mallopt: see `man mallopt`.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
MAX_BYTES = 1 << 30
BLOCKS = 16


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="scae-kernel")


def run_blocks(block: Callable[[int, int, int], None], total: int, smallest: int) -> None:
    """block(number, first, last) for parts of range(total), on all threads, this one included.

    Up to BLOCKS parts, whatever the number of threads, none below `smallest` but the last:
    results added up block by block do not depend on scheduling. Kernels free the GIL.
    """
    size = max(smallest, -(-total // BLOCKS))
    count = -(-total // size)
    remaining = iter(range(count))

    def work() -> None:
        for n in remaining:  # advancing a range iterator is atomic: each block is done once
            block(n, n * size, min((n + 1) * size, total))

    helpers = min(torch.get_num_threads(), count) - 1
    futures: list[Future[None]] = []
    if helpers > 0:
        futures = [_pool(helpers).submit(work) for _ in range(helpers)]
    work()
    for future in futures:
        future.result()


def keep_freed_memory() -> None:
    """Let glibc reuse freed blocks up to a gigabyte instead of returning them to the system.

    Otherwise every step maps and clears its large tensors anew, 6 to 10 % of its time on
    MNIST. Does nothing where the C library is another one.
    """
    try:
        libc = ctypes.CDLL("libc.so.6")
    except OSError:
        return
    libc.mallopt(M_MMAP_THRESHOLD, MAX_BYTES)
    libc.mallopt(M_TRIM_THRESHOLD, MAX_BYTES)
