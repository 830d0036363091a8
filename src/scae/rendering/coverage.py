"""Passes of the fused renderer that know geometry: which pixels a template covers, and where.

A row's covered (part, pixel) pairs lie in flat arrays, part after part. Each pass is a loop
that the compiler turns into vector instructions where it can. Literals are float64 to numba,
hence the constants cast to the arrays' type.
"""

from typing import no_type_check

import numpy as np

from scae.kernels.jit import compiled
from scae.mixtures import ZERO as ABSENT

PAD = 2
"""Zero border of a template: one pixel that bilinear sampling reads, one against rounding."""
LANES = 8


@compiled
@no_type_check
def lay_out(i, affine, d, printed, size, area, outside, left, at, index, pixel, fx, fy, weight):
    """Flat list of row i's covered (part, pixel) pairs; returns its length.

    Part m owns entries at[m] .. at[m + 1], its pixels start in column left[m]. ``outside`` sums
    the presences that miss a pixel.
    """
    real = fx.dtype.type
    height, width = size
    zero, columns = real(0), np.float64(outside.size)
    for j in range(outside.size):
        outside[j] = zero
    n = 0
    for m in range(d.size):
        at[m], left[m] = n, 0
        present = d[m]
        if present < ABSENT:
            continue
        u, v = affine[m, 0, 1] * i + affine[m, 0, 2], affine[m, 1, 1] * i + affine[m, 1, 2]
        # Covered are the columns with -1 < u + column * du < width, and the same for v.
        u0, u1 = (-1.0 - u) * affine[m, 0, 3], (width - u) * affine[m, 0, 3]
        v0, v1 = (-1.0 - v) * affine[m, 1, 3], (height - v) * affine[m, 1, 3]
        low = min(max(max(min(u0, u1), min(v0, v1)), -1.0), columns)
        high = min(max(min(max(u0, u1), max(v0, v1)), -1.0), columns)
        # Truncation rounds down, being of positive numbers. No branches: they would be guesses.
        first = min(np.int64(low + 1.0), outside.size)
        last = max(min(np.int64(high + 1.0), outside.size), first)
        left[m] = first
        if not printed:
            for j in range(outside.size):
                outside[j] += present if j < first or j >= last else zero
        # From the interval's start, where coordinates are small, float32 is exact enough.
        u, v = real(u + affine[m, 0, 0] * first + PAD), real(v + affine[m, 1, 0] * first + PAD)
        du, dv = real(affine[m, 0, 0]), real(affine[m, 1, 0])
        base, pitch = np.int32(m * area), np.int32(width + 2 * PAD)
        # Eight at a time, each array on its own, is what the compiler turns into vectors; what
        # is written behind the interval's end is overwritten by the next part.
        for begin in range(0, last - first, LANES):
            k, e = np.int32(begin), np.uint32(n + begin)
            for lane in range(LANES):
                along = real(k + np.int32(lane))
                row, column = np.int32(v + dv * along), np.int32(u + du * along)
                index[e + lane] = base + row * pitch + column
            for lane in range(LANES):
                x = u + du * real(k + np.int32(lane))
                fx[e + lane] = x - real(np.int32(x))
            for lane in range(LANES):
                y = v + dv * real(k + np.int32(lane))
                fy[e + lane] = y - real(np.int32(y))
            for lane in range(LANES):
                weight[e + lane] = present
            for lane in range(LANES):
                pixel[e + lane] = first + begin + lane
        n += last - first
    at[d.size] = n
    return n


@compiled
@no_type_check
def sample(n, planes, index, pitch, fx, fy, value, along_x, along_y):
    """Bilinear interpolation of every plane and its two derivatives."""
    for p in range(planes.shape[0]):
        for e in range(n):
            i = np.uint32(index[e])
            top, below = planes[p, i], planes[p, i + pitch]
            top_step, below_step = planes[p, i + 1] - top, planes[p, i + pitch + 1] - below
            upper, lower = top + fx[e] * top_step, below + fx[e] * below_step
            along_y[p, e] = lower - upper
            along_x[p, e] = top_step + fy[e] * (below_step - top_step)
            value[p, e] = upper + fy[e] * (lower - upper)


@compiled
@no_type_check
def scatter(n, planes, index, pitch, fx, fy, gradient):
    """Transpose of ``sample``: add the gradients to the four neighbours."""
    for p in range(planes.shape[0]):
        for e in range(n):
            i, g = np.uint32(index[e]), gradient[p, e]
            right, low = g * fx[e], g * fy[e]
            corner = right * fy[e]
            planes[p, i] += g - right - low + corner
            planes[p, i + 1] += right - corner
            planes[p, i + pitch] += low - corner
            planes[p, i + pitch + 1] += corner


@compiled
@no_type_check
def paint(at, tint, source, result):
    """Multiply every part's entries by its colour."""
    for c in range(tint.shape[0]):
        for m in range(tint.shape[1]):
            colour = tint[c, m]
            for begin in range(at[m], at[m + 1], LANES):
                e = np.uint32(begin)
                for lane in range(LANES):
                    result[c, e + lane] = colour * source[c, e + lane]


@compiled
@no_type_check
def to_colours(at, slope, warped, g_tint):
    """Gradient through ``paint`` to the colours."""
    for c in range(g_tint.shape[0]):
        for m in range(g_tint.shape[1]):
            total = slope.dtype.type(0)
            for e in range(np.uint32(at[m]), np.uint32(at[m + 1])):
                total += slope[c, e] * warped[c, e]
            g_tint[c, m] += total


@compiled
@no_type_check
def to_position(n, gradient, along_x, along_y, gx, gy):
    """Gradient through ``sample`` to the template coordinates."""
    for e in range(n):
        gx[e] = gradient[0, e] * along_x[0, e]
    for e in range(n):
        gy[e] = gradient[0, e] * along_y[0, e]
    for p in range(1, gradient.shape[0]):
        for e in range(n):
            gx[e] += gradient[p, e] * along_x[p, e]
        for e in range(n):
            gy[e] += gradient[p, e] * along_y[p, e]


@compiled
@no_type_check
def gather_parts(i, at, left, d, excess, gx, gy, missing, before, after, g_presence, g_affine):
    """Sum a row's gradients to each part's presence and coordinates."""
    real, last = gx.dtype.type, missing.size
    # Two running sums instead of one and a difference: no cancellation.
    before[0], after[last] = 0.0, 0.0
    for j in range(last):
        before[j + 1] = before[j] + missing[j]
    for j in range(last - 1, -1, -1):
        after[j] = after[j + 1] + missing[j]
    for m in range(d.size):
        if d[m] < ABSENT:
            continue
        first, n = np.uint32(at[m]), at[m + 1] - at[m]
        g_presence[m] += before[left[m]] + after[left[m] + n]
        weight, x, y, x_along, y_along = real(0), real(0), real(0), real(0), real(0)
        for k in range(n):
            weight += excess[first + k]
            x += gx[first + k]
            y += gy[first + k]
            x_along += gx[first + k] * real(k)
            y_along += gy[first + k] * real(k)
        g_presence[m] += np.float64(weight) / np.float64(d[m])
        g_affine[m, 0, 0] += x_along + np.float64(x) * left[m]
        g_affine[m, 1, 0] += y_along + np.float64(y) * left[m]
        g_affine[m, 0, 1] += np.float64(x) * i
        g_affine[m, 1, 1] += np.float64(y) * i
        g_affine[m, 0, 2] += x
        g_affine[m, 1, 2] += y
