"""Batch statistics over the global batch when several processes train one model."""

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as collectives
from jaxtyping import Float
from torch import Tensor


def world() -> int:
    """Number of processes that share a batch."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Index of this process; its rows of the global batch are rank*b ... (rank+1)*b - 1."""
    return dist.get_rank() if world() > 1 else 0


def global_batch_sum(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Sum of `x` over all processes, differentiable.

    Its backward pass sums gradients over processes too, so together with the *mean* that
    data-parallel training takes, a loss of this sum has the gradient of one big batch.
    """
    return collectives.all_reduce(x) if world() > 1 else x


def global_uniform_like(x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
    """U[0, 1) noise drawn for the global batch; this process's rows of it.

    Every process draws the same numbers, so N processes see the noise one would. Not by
    `rand_like`: it fills in the order of x's memory, which a transposed x would change.
    """
    noise = torch.rand((world() * x.shape[0], *x.shape[1:]), dtype=x.dtype, device=x.device)
    return noise[rank() * x.shape[0] : (rank() + 1) * x.shape[0]]
