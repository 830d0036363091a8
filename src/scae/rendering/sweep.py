"""The fused renderer's machine code: one image row at a time, only where templates reach.

Along a row the template coordinates of a part are affine in the column, so the pixels that a
template covers are one interval. The covered (part, pixel) pairs of a row, some hundreds, are
laid out flat and every pass runs over them in cache; nothing of size
batch x parts x height x width exists. Parts that miss a pixel share one black component whose
weight is the sum of their presences. All gradients are made in the same sweep.
"""

import math
from typing import no_type_check

import numpy as np

from scae.kernels.jit import compiled, entry
from scae.rendering.coverage import (
    LANES,
    PAD,
    gather_parts,
    lay_out,
    paint,
    sample,
    scatter,
    to_colours,
    to_position,
)
from scae.rendering.responsibilities import (
    BG_LOGIT,
    BG_VALUE,
    PRECISION,
    SHARPNESS,
    begin,
    differentiate,
    dot,
    finish,
    log_ratio,
    respond,
    score,
    to_background,
    to_mixing,
    weigh,
)


@compiled
@no_type_check
def _to_template(pose, height, width, half_height, half_width, affine):
    """(u, v) = affine[:, 0] * column + affine[:, 1] * row + affine[:, 2], in template pixels.

    affine[:, 3] is 1 / affine[:, 0]. Returns 0, or NaN if any pose has no inverse.
    """
    half, lost = (half_width, half_height), 0.0
    for m in range(pose.shape[0]):
        a, b, tx = np.float64(pose[m, 0, 0]), np.float64(pose[m, 0, 1]), np.float64(pose[m, 0, 2])
        c, d, ty = np.float64(pose[m, 1, 0]), np.float64(pose[m, 1, 1]), np.float64(pose[m, 1, 2])
        det = a * d - b * c
        inverse = ((d / det, -b / det), (-c / det, a / det))
        for k in range(2):
            p, q = inverse[k]
            affine[m, k, 0] = half[k] * p * 2.0 / (width - 1)
            affine[m, k, 1] = half[k] * q * 2.0 / (height - 1)
            affine[m, k, 2] = half[k] * (1.0 - p - q - p * tx - q * ty)
            step = affine[m, k, 0]
            affine[m, k, 3] = 1.0 / step if abs(step) > 1e-30 else 1e30
        total = 0.0
        for k in range(2):
            total += affine[m, k, 0] + affine[m, k, 1] + affine[m, k, 2]
        # A singular pose or NaN covers nothing, so that no address is computed from it. Compared,
        # as isfinite is a difference that reordering turns into zero.
        if not abs(total) < 1e100:
            lost = math.nan
            for k in range(2):
                affine[m, k, 0], affine[m, k, 1], affine[m, k, 2] = 0.0, 0.0, -9.0
                affine[m, k, 3] = 1e30
    return lost


@compiled
@no_type_check
def _to_pose(pose, height, width, half_height, half_width, g_affine, g_pose):
    """Chain rule of ``_to_template``; d(A^-1) = -A^-1 dA A^-1."""
    half = (half_width, half_height)
    inverse, g = np.empty((2, 2)), np.empty((2, 3))
    for m in range(pose.shape[0]):
        a, b, tx = np.float64(pose[m, 0, 0]), np.float64(pose[m, 0, 1]), np.float64(pose[m, 0, 2])
        c, d, ty = np.float64(pose[m, 1, 0]), np.float64(pose[m, 1, 1]), np.float64(pose[m, 1, 2])
        det = a * d - b * c
        inverse[0, 0], inverse[0, 1] = d / det, -b / det
        inverse[1, 0], inverse[1, 1] = -c / det, a / det
        for k in range(2):
            offset = half[k] * g_affine[m, k, 2]
            g[k, 0] = half[k] * g_affine[m, k, 0] * 2.0 / (width - 1) - offset * (1.0 + tx)
            g[k, 1] = half[k] * g_affine[m, k, 1] * 2.0 / (height - 1) - offset * (1.0 + ty)
            g[k, 2] = -offset
        for r in range(2):
            for s in range(2):
                total = 0.0
                for k in range(2):
                    for n in range(2):
                        total -= inverse[k, r] * g[k, n] * inverse[s, n]
                g_pose[m, r, s] = total
            g_pose[m, r, 2] = inverse[0, r] * g[0, 2] + inverse[1, r] * g[1, 2]


@entry
@no_type_check
def render_images(
    first_image, last_image, target, pose, presence, planes, colours, scalars, printed, coupled,
    mild, shift, with_gradients, value, g_pose, g_presence, g_colours, g_planes, g_scalars,
):  # fmt: skip
    """Log-likelihoods of some images, and the gradients of their sum.

    ``planes`` (planes, parts, padded height, padded width) are the templates' channels and, if
    learned, alpha last; ``colours`` are (batch, channels, parts). ``g_planes`` and ``g_scalars``
    are added to, the others written. ``mild`` and ``shift``: see ``respond`` and ``begin``.
    """
    real = planes.dtype.type
    channels, height, width = target.shape[1:]
    P, M, rows, pitch = planes.shape
    half_height, half_width = 0.5 * (rows - 2 * PAD - 1), 0.5 * (pitch - 2 * PAD - 1)
    flat = planes.reshape(P, M * rows * pitch)
    g_flat = g_planes.reshape(P, M * rows * pitch)
    mixtures = channels if coupled else 1
    bg_value, bg_logit = scalars[BG_VALUE], scalars[BG_LOGIT]
    precision, scale = scalars[PRECISION], scalars[SHARPNESS] if coupled else real(1)
    constant = 0.5 * channels * height * width * math.log(precision / (2.0 * math.pi))

    dtype, length, zero = planes.dtype, M * width + LANES, real(0)
    index, pixel = np.empty(length, np.int32), np.empty(length, np.int32)
    left, at = np.empty(M, np.int64), np.empty(M + 1, np.int64)
    fx, fy, d = np.empty(length, dtype), np.empty(length, dtype), np.empty(length, dtype)
    excess, g_weight = np.empty(length, dtype), np.empty(length, dtype)
    gx, gy = np.empty(length, dtype), np.empty(length, dtype)
    warped, along_x = np.empty((P, length), dtype), np.empty((P, length), dtype)
    along_y, g_warped = np.empty((P, length), dtype), np.empty((P, length), dtype)
    mean, error = np.empty((channels, length), dtype), np.empty((channels, length), dtype)
    share1, slope = np.empty((channels, length), dtype), np.empty((channels, length), dtype)
    weight, log_weight = np.empty((mixtures, length), dtype), np.empty((mixtures, length), dtype)
    share2, scores = np.empty((mixtures, length), dtype), np.empty((channels, length), dtype)
    nothing, outside, missing = (
        np.zeros(width, dtype),
        np.empty(width, dtype),
        np.empty(width, dtype),
    )
    highest1, total1 = np.empty((channels, width), dtype), np.empty((channels, width), dtype)
    black1, back1 = np.empty((channels, width), dtype), np.empty((channels, width), dtype)
    highest2, total2 = np.empty((mixtures, width), dtype), np.empty((mixtures, width), dtype)
    black2, back2 = np.empty((mixtures, width), dtype), np.empty((mixtures, width), dtype)
    before, after = np.empty(width + 1), np.empty(width + 1)
    affine, g_affine = np.empty((M, 2, 4)), np.empty((M, 2, 3))
    g_d, g_tint = np.empty(M), np.empty((channels, M))
    step = np.uint32(pitch)
    mixing, first_row = (mean, 0) if coupled else (warped, channels)

    for b in range(first_image, last_image):
        log_p = constant + _to_template(
            pose[b], height, width, half_height, half_width, affine
        )  # fmt: skip
        here, tint = presence[b], colours[b]
        for m in range(M):
            g_d[m] = 0.0
            for c in range(channels):
                g_tint[c, m] = 0.0
            for k in range(3):
                g_affine[m, 0, k] = g_affine[m, 1, k] = 0.0
        for i in range(height):
            n = lay_out(
                i, affine, here, printed, (rows - 2 * PAD, pitch - 2 * PAD), rows * pitch,
                outside, left, at, index, pixel, fx, fy, d,
            )  # fmt: skip
            sample(n, flat, index, step, fx, fy, warped, along_x, along_y)
            paint(at, tint, warped, mean)
            # Weights alone: the normaliser of eq. 9, once for all channels unless coupled.
            for k in range(mixtures):
                weigh(n, mixing, first_row + k, d, scale, printed, k, log_weight, weight)
                begin(nothing, outside, zero, bg_logit, zero, mild, shift, k, highest2)
                respond(n, pixel, k, log_weight, k, weight, mild, k, highest2, share2, total2)
                finish(
                    nothing, outside, zero, bg_logit, zero, k, highest2, total2, black2, back2
                )  # fmt: skip
            # Weights times densities.
            for c in range(channels):
                k, y = c if coupled else 0, target[b, c, i]
                score(n, pixel, y, c, mean, k, log_weight, precision, error, scores)
                begin(y, outside, bg_value, bg_logit, precision, mild, shift, c, highest1)
                respond(n, pixel, c, scores, k, weight, mild, c, highest1, share1, total1)
                finish(
                    y, outside, bg_value, bg_logit, precision, c, highest1, total1, black1, back1
                )  # fmt: skip
                log_p += log_ratio(c, total1, highest1, k, total2, highest2)
            if not with_gradients:
                continue

            for e in range(n):
                g_weight[e] = zero
            for j in range(width):
                missing[j] = zero
            if not coupled:
                for e in range(n):
                    g_warped[channels, e] = zero
            for c in range(channels):
                k, y = c if coupled else 0, target[b, c, i]
                spread = differentiate(
                    n, pixel, c, error, share1, total1, k, share2, total2, precision, excess, slope
                )  # fmt: skip
                g_scalars[PRECISION] -= 0.5 * spread
                for e in range(n):
                    g_weight[e] += excess[e]
                if coupled:
                    g_scalars[SHARPNESS] += dot(n, excess, c, mean)
                    to_mixing(n, excess, d, k, weight, scale, printed, c, slope)
                else:
                    to_mixing(n, excess, d, k, weight, scale, printed, channels, g_warped)
                to_background(
                    y, outside, bg_value, precision, c, black1, back1, k, black2, back2,
                    missing, g_scalars,
                )  # fmt: skip
            paint(at, tint, slope, g_warped)
            to_colours(at, slope, warped, g_tint)
            to_position(n, g_warped, along_x, along_y, gx, gy)
            scatter(n, g_flat, index, step, fx, fy, g_warped)
            gather_parts(
                i, at, left, here, g_weight, gx, gy, missing, before, after, g_d, g_affine
            )  # fmt: skip
        value[b] = log_p
        if with_gradients:
            _to_pose(pose[b], height, width, half_height, half_width, g_affine, g_pose[b])
            for m in range(M):
                g_presence[b, m] = g_d[m]
                for c in range(channels):
                    g_colours[b, c, m] = g_tint[c, m]
