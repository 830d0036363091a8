"""Self-attention within sets of different sizes that lie end to end, without padding.

A dozen points give matrices of a dozen rows, for which a call of a batched matrix product
costs more than its arithmetic; here a whole set's attention is a few nested loops in cache.
"""

import math
from typing import Any, no_type_check

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from scae.kernels import run_blocks
from scae.kernels.jit import entry, exp

SMALL = 1 << 23
"""Multiply-adds below which waking a second thread costs more than it saves."""


@entry
@no_type_check
def attend_forward(first, last, qkv, starts, squares, heads, out, weights):
    """softmax(Q K^T / sqrt(d)) V of sets `first` to `last`; keeps the weights for backward."""
    # Unsigned throughout: numba then drops its code for negative indices from the inner loops.
    d = np.uint64(qkv.shape[1] // 3 // heads)
    scale = np.float32(1.0 / math.sqrt(d))
    for s in range(first, last):
        begin = np.uint64(starts[s])
        n = np.uint64(starts[s + 1]) - begin
        for head in range(np.uint64(heads)):
            q = head * d
            k = q + np.uint64(heads) * d
            v = k + np.uint64(heads) * d
            for i in range(n):
                row = np.uint64(squares[s]) + i * n
                largest = np.float32(-np.inf)
                for j in range(n):
                    logit = np.float32(0.0)
                    for c in range(d):
                        logit += qkv[begin + i, q + c] * qkv[begin + j, k + c]
                    weights[head, row + j] = logit * scale
                    largest = max(largest, logit * scale)
                total = np.float32(0.0)
                for j in range(n):
                    weights[head, row + j] = exp(weights[head, row + j] - largest)
                    total += weights[head, row + j]
                for c in range(d):
                    out[begin + i, q + c] = 0
                for j in range(n):
                    weight = weights[head, row + j] / total
                    weights[head, row + j] = weight
                    for c in range(d):
                        out[begin + i, q + c] += weight * qkv[begin + j, v + c]


@entry
@no_type_check
def attend_backward(first, last, qkv, starts, squares, heads, weights, upstream, gradient):
    """Gradient of sets `first` to `last` with respect to qkv; `gradient` starts at zero."""
    d = np.uint64(qkv.shape[1] // 3 // heads)
    scale = np.float32(1.0 / math.sqrt(d))
    for s in range(first, last):
        begin = np.uint64(starts[s])
        n = np.uint64(starts[s + 1]) - begin
        slopes = np.empty(n, qkv.dtype)
        for head in range(np.uint64(heads)):
            q = head * d
            k = q + np.uint64(heads) * d
            v = k + np.uint64(heads) * d
            for i in range(n):
                row = np.uint64(squares[s]) + i * n
                mean = np.float32(0.0)
                for j in range(n):
                    weight = weights[head, row + j]
                    slope = np.float32(0.0)
                    for c in range(d):
                        slope += upstream[begin + i, q + c] * qkv[begin + j, v + c]
                    for c in range(d):
                        gradient[begin + j, v + c] += weight * upstream[begin + i, q + c]
                    slopes[j] = slope
                    mean += weight * slope
                for j in range(n):
                    to_logit = weights[head, row + j] * (slopes[j] - mean) * scale
                    for c in range(d):
                        gradient[begin + i, q + c] += to_logit * qkv[begin + j, k + c]
                    for c in range(d):
                        gradient[begin + j, k + c] += to_logit * qkv[begin + i, q + c]


def _smallest(sets: int, work: int) -> int:
    return sets if work < SMALL else 1


class PackedAttention(torch.autograd.Function):
    """Multi-head self-attention of sets that lie end to end; `starts` has one entry more."""

    @staticmethod
    def forward(
        ctx: Any,
        qkv: Float[Tensor, "total three_inner"],
        starts: Int[Tensor, " sets_and_end"],
        heads: int,
    ) -> Float[Tensor, "total inner"]:
        x, where = np.ascontiguousarray(qkv.detach().numpy()), starts.numpy()
        squares = np.concatenate([[0], np.cumsum(np.diff(where) ** 2)])
        out = np.empty((len(x), x.shape[1] // 3), x.dtype)
        weights = np.empty((heads, squares[-1]), x.dtype)
        sets = len(where) - 1
        run_blocks(
            lambda _, *some: attend_forward(*some, x, where, squares, heads, out, weights),
            sets,
            _smallest(sets, weights.size * x.shape[1]),
        )
        ctx.save_for_backward(qkv, starts)
        ctx.heads, ctx.squares, ctx.weights = heads, squares, weights
        return torch.from_numpy(out)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        qkv, starts = ctx.saved_tensors
        x, where = np.ascontiguousarray(qkv.detach().numpy()), starts.numpy()
        above = np.ascontiguousarray(upstream.numpy())
        gradient = np.zeros_like(x)
        arrays = x, where, ctx.squares, ctx.heads, ctx.weights, above, gradient
        sets = len(where) - 1
        run_blocks(
            lambda _, *some: attend_backward(*some, *arrays),
            sets,
            _smallest(sets, ctx.weights.size * x.shape[1]),
        )
        return torch.from_numpy(gradient), None, None
