"""Batch statistics over the global batch when several processes train one model."""

from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor


def world() -> int:
    """Number of processes that share a batch."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Index of this process; its rows of the global batch are rank*b ... (rank+1)*b - 1."""
    return dist.get_rank() if world() > 1 else 0


class _SumOverProcesses(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Tensor:
        total = upstream[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total


def global_batch_sum(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Sum of `x` over all processes, differentiable.

    Its backward pass sums gradients over processes too, so together with the *mean* that
    data-parallel training takes, a loss of this sum has the gradient of one big batch.
    """
    if world() == 1:
        return x
    total: Tensor = _SumOverProcesses.apply(x)
    return total


def global_batch_max(x: Float[Tensor, "..."]) -> Float[Tensor, ""]:
    """Largest element of `x` over all processes, without gradient."""
    largest = x.detach().amax()
    if world() > 1:
        dist.all_reduce(largest, dist.ReduceOp.MAX)
    return largest


def global_uniform_like(x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
    """U[0, 1) noise drawn for the global batch; this process's rows of it.

    Every process draws the same numbers, so N processes see the noise one would. Not by
    `rand_like`: it fills in the order of x's memory, which a transposed x would change.
    """
    noise = torch.rand((world() * x.shape[0], *x.shape[1:]), dtype=x.dtype, device=x.device)
    return noise[rank() * x.shape[0] : (rank() + 1) * x.shape[0]]
