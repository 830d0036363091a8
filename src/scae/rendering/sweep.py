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

from scae.rendering.coverage import (
    LANES,
    PAD,
    colour_back,
    gather_parts,
    lay_out,
    paint,
    sample,
    scatter,
)
from scae.rendering.jit import compiled, entry
from scae.rendering.responsibilities import (
    BG_LOGIT,
    BG_VALUE,
    PRECISION,
    SHARPNESS,
    accumulate,
    begin,
    differentiate,
    dot,
    finish,
    log_ratio,
    respond,
    score,
    to_mixing,
    unlearned,
    weigh,
)


@compiled
@no_type_check
def _to_template(pose, height, width, half_height, half_width, affine):
    """(u, v) = affine[:, 0] * column + affine[:, 1] * row + affine[:, 2], in template pixels.

    affine[:, 3] is 1 / affine[:, 0].
    """
    half = (half_width, half_height)
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
    with_gradients, value, g_pose, g_presence, g_colours, g_planes, g_scalars,
):  # fmt: skip
    """Log-likelihoods of some images, and the gradients of their sum.

    ``planes`` (planes, parts, padded height, padded width) are the templates' channels and, if
    learned, alpha last. ``g_planes`` and ``g_scalars`` are added to, the others written.
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
    fx, fy, d, scores, excess, g_weight, gx, gy = np.empty((8, length), dtype)
    warped, along_x, along_y, g_warped = np.empty((4, P, length), dtype)
    mean, error, share1, slope = np.empty((4, channels, length), dtype)
    weight, log_weight, share2 = np.empty((3, mixtures, length), dtype)
    nothing, outside = np.zeros(width, dtype), np.empty(width, dtype)
    highest1, total1, black1, back1 = np.empty((4, channels, width), dtype)
    highest2, total2, black2, back2 = np.empty((4, mixtures, width), dtype)
    missing, before, after = np.empty(width, dtype), np.empty(width + 1), np.empty(width + 1)
    affine, g_affine = np.empty((M, 2, 4)), np.empty((M, 2, 3))
    g_d, g_colour = np.empty(M), np.empty((channels, M))
    step = np.uint32(pitch)

    for b in range(first_image, last_image):
        _to_template(pose[b], height, width, half_height, half_width, affine)
        tint = colours[b].T.copy()
        g_affine[:], g_d[:], g_colour[:] = 0.0, 0.0, 0.0
        log_p = constant
        for i in range(height):
            n = lay_out(
                i, affine, presence[b], printed, (rows - 2 * PAD, pitch - 2 * PAD), rows * pitch,
                outside, left, at, index, pixel, fx, fy, d,
            )  # fmt: skip
            for p in range(P):
                sample(n, flat[p], index, step, fx, fy, warped[p], along_x[p], along_y[p])
            for c in range(channels):
                paint(at, tint[c], warped[c], mean[c])
            # Weights alone: the normaliser of eq. 9, once for all channels unless coupled.
            for k in range(mixtures):
                mixing = mean[k] if coupled else warped[channels]
                weigh(n, mixing, d, scale, printed, log_weight[k], weight[k])
                begin(nothing, outside, zero, bg_logit, zero, highest2[k])
                respond(n, pixel, log_weight[k], weight[k], highest2[k], share2[k], total2[k])
                finish(
                    nothing, outside, zero, bg_logit, zero,
                    highest2[k], total2[k], black2[k], back2[k],
                )  # fmt: skip
            # Weights times densities.
            for c in range(channels):
                k, y = c if coupled else 0, target[b, c, i]
                score(n, pixel, y, mean[c], weight[k], log_weight[k], precision, error[c], scores)
                begin(y, outside, bg_value, bg_logit, precision, highest1[c])
                respond(n, pixel, scores, weight[k], highest1[c], share1[c], total1[c])
                finish(
                    y, outside, bg_value, bg_logit, precision,
                    highest1[c], total1[c], black1[c], back1[c],
                )  # fmt: skip
                log_p += log_ratio(total1[c], total2[k], highest1[c], highest2[k])
            if not with_gradients:
                continue

            gx[:], gy[:], g_weight[:], missing[:] = zero, zero, zero, zero
            if not coupled:
                g_warped[channels] = zero
            for c in range(channels):
                k, y = c if coupled else 0, target[b, c, i]
                spread = differentiate(
                    n, pixel, error[c], share1[c], share2[k], total1[c], total2[k], precision,
                    excess, slope[c],
                )  # fmt: skip
                g_scalars[PRECISION] -= 0.5 * spread
                for e in range(n):
                    g_weight[e] += excess[e]
                if coupled:
                    g_scalars[SHARPNESS] += dot(n, excess, mean[c])
                    to_mixing(n, excess, d, weight[k], scale, printed, slope[c])
                else:
                    to_mixing(n, excess, d, weight[k], scale, printed, g_warped[channels])
                colour_back(at, tint[c], slope[c], warped[c], g_warped[c], g_colour[c])
                unlearned(
                    y, outside, bg_value, precision, black1[c], back1[c], black2[k], back2[k],
                    missing, g_scalars,
                )  # fmt: skip
            for p in range(P):
                accumulate(n, g_warped[p], along_x[p], gx)
                accumulate(n, g_warped[p], along_y[p], gy)
                scatter(n, g_flat[p], index, step, fx, fy, g_warped[p])
            gather_parts(
                i, at, left, presence[b], g_weight, gx, gy, missing, before, after, g_d, g_affine
            )
        value[b] = log_p
        if with_gradients:
            _to_pose(pose[b], height, width, half_height, half_width, g_affine, g_pose[b])
            g_presence[b] = g_d
            g_colours[b] = g_colour.T
