"""Blocks of a batch on torch's number of threads."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

import torch


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="scae-kernel")


def run_blocks(block: Callable[[int], None], count: int) -> None:
    """block(0) to block(count - 1) on all threads, this one included; kernels free the GIL."""
    remaining = iter(range(count))

    def work() -> None:
        for n in remaining:  # advancing a range iterator is atomic: each block is done once
            block(n)

    helpers = min(torch.get_num_threads(), count) - 1
    futures: list[Future[None]] = []
    if helpers > 0:
        futures = [_pool(helpers).submit(work) for _ in range(helpers)]
    work()
    for future in futures:
        future.result()
