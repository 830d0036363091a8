"""Passes of the fused renderer that know the mixture: weights, responsibilities, gradients.

Arrays over covered (part, pixel) pairs come with their length n and the pixel of each pair;
arrays over the pixels of the row have no length of their own.
"""

import math
from typing import no_type_check

import numpy as np

from scae.kernels.jit import compiled, exp
from scae.mixtures import ZERO as ABSENT

NEVER = -1e30
"""Score of a component that takes no part."""
BG_VALUE, BG_LOGIT, PRECISION, SHARPNESS = range(4)
"""Entries of ``scalars``: background, 1 / sigma^2, 1 / temperature."""


@compiled
@no_type_check
def weigh(n, mixing, row, d, scale, printed, k, log_weight, weight):
    """Mixture weights: weight * exp(log_weight)."""
    real = weight.dtype.type
    zero, least = real(0), real(ABSENT)
    if printed:
        for e in range(n):
            w = d[e] * mixing[row, e]
            weight[k, e] = w if w >= least else zero
        for e in range(n):
            log_weight[k, e] = zero
    else:
        for e in range(n):
            weight[k, e] = d[e]
        for e in range(n):
            log_weight[k, e] = scale * mixing[row, e]


@compiled
@no_type_check
def score(n, pixel, y, c, mean, k, log_weight, precision, error, scores):
    """Log-weight + log-density of each covered pixel, up to a constant."""
    half = mean.dtype.type(-0.5) * precision
    for e in range(n):
        error[c, e] = y[np.uint32(pixel[e])]
    for e in range(n):
        error[c, e] -= mean[c, e]
    for e in range(n):
        scores[c, e] = log_weight[k, e] + half * error[c, e] * error[c, e]


@compiled
@no_type_check
def respond(n, pixel, row, scores, k, weight, mild, c, highest, share, total):
    """Unnormalised responsibilities and their sum in each pixel, safe against overflow.

    ``mild``: no score of the batch can under- or overflow next to ``highest``, which then is one
    number. Otherwise it is raised to the highest score in each pixel.
    """
    zero = total.dtype.type(0)
    if mild:
        shift = highest[c, 0]
        for e in range(n):
            share[c, e] = weight[k, e] * exp(scores[row, e] - shift)
    else:
        for e in range(n):
            if weight[k, e] > 0:
                j = np.uint32(pixel[e])
                highest[c, j] = max(highest[c, j], scores[row, e])
        for e in range(n):
            # Only entries without weight lie above the highest score.
            over = scores[row, e] - highest[c, np.uint32(pixel[e])]
            share[c, e] = weight[k, e] * exp(min(over, zero))
    for j in range(total.shape[1]):
        total[c, j] = zero
    for e in range(n):
        total[c, np.uint32(pixel[e])] += share[c, e]


@compiled
@no_type_check
def begin(y, outside, value, logit, precision, mild, shift, c, highest):
    """Highest log-weight + log-density of the two components that need no template."""
    real = y.dtype.type
    half, never = real(-0.5) * precision, real(NEVER)
    for j in range(y.size):
        black = half * y[j] * y[j] if outside[j] > 0 else never
        top = max(logit + half * (y[j] - value) * (y[j] - value), black)
        highest[c, j] = shift if mild else top


@compiled
@no_type_check
def finish(y, outside, value, logit, precision, c, highest, total, black, back):
    """Add those two components; ``total`` becomes the normaliser's inverse.

    ``black`` is the responsibility of a unit of presence that misses the pixel, ``back`` that
    of the background.
    """
    real = y.dtype.type
    zero, one, half = real(0), real(1), real(-0.5) * precision
    for j in range(y.size):
        dark = exp(min(half * y[j] * y[j] - highest[c, j], zero))
        rear = exp(logit + half * (y[j] - value) * (y[j] - value) - highest[c, j])
        inverse = one / (total[c, j] + outside[j] * dark + rear)
        black[c, j] = dark * inverse if outside[j] > 0 else zero
        back[c, j] = rear * inverse
        total[c, j] = inverse


@compiled
@no_type_check
def log_ratio(c, inverse1, highest1, k, inverse2, highest2):
    """Sum over pixels of log(total1 / total2), one logarithm for every four pixels.

    Totals are float32, at least 1e-37: a float64 holds the product of four.
    """
    result, above, below, count = 0.0, 1.0, 1.0, 0
    for j in range(inverse1.shape[1]):
        result += np.float64(highest1[c, j]) - np.float64(highest2[k, j])
        below *= np.float64(inverse1[c, j])
        above *= np.float64(inverse2[k, j])
        count += 1
        if count == 4:
            result += math.log(above / below)
            above, below, count = 1.0, 1.0, 0
    return result + math.log(above / below)


@compiled
@no_type_check
def differentiate(
    n, pixel, c, error, share1, inverse1, k, share2, inverse2, precision, excess, slope
):  # fmt: skip
    """Gradients to log-weights (``excess``) and means (``slope``); returns -2 d/d precision."""
    for e in range(n):
        slope[c, e] = share1[c, e] * inverse1[c, np.uint32(pixel[e])]
    for e in range(n):
        excess[e] = slope[c, e] - share2[k, e] * inverse2[k, np.uint32(pixel[e])]
    spread = error.dtype.type(0)
    for e in range(n):
        spread += slope[c, e] * error[c, e] * error[c, e]
    for e in range(n):
        slope[c, e] *= error[c, e] * precision
    return np.float64(spread)


@compiled
@no_type_check
def to_mixing(n, excess, d, k, weight, scale, printed, row, gradient):
    """Add the gradient that reaches alpha (or the coupled value) through the log-weights."""
    zero = d.dtype.type(0)
    if printed:
        for e in range(n):
            gradient[row, e] += excess[e] * d[e] / weight[k, e] if weight[k, e] > 0 else zero
    else:
        for e in range(n):
            gradient[row, e] += scale * excess[e]


@compiled
@no_type_check
def to_background(
    y, outside, value, precision, c, black1, back1, k, black2, back2, missing, g_scalars
):  # fmt: skip
    """Gradients of the background; ``missing`` adds up those to presences that miss a pixel."""
    real = y.dtype.type
    spread, to_value, to_logit = real(0), real(0), real(0)
    for j in range(y.size):
        off = y[j] - value
        spread += outside[j] * black1[c, j] * y[j] * y[j] + back1[c, j] * off * off
        to_value += back1[c, j] * off
        to_logit += back1[c, j] - back2[k, j]
    for j in range(y.size):
        missing[j] += black1[c, j] - black2[k, j]
    g_scalars[BG_VALUE] += to_value * precision
    g_scalars[BG_LOGIT] += to_logit
    g_scalars[PRECISION] += 0.5 * (y.size / np.float64(precision) - np.float64(spread))


@compiled
@no_type_check
def dot(n, a, c, b):
    total = a.dtype.type(0)
    for e in range(n):
        total += a[e] * b[c, e]
    return np.float64(total)
