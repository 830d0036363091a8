"""Passes of the fused renderer that know the mixture: weights, responsibilities, gradients.

Arrays over covered (part, pixel) pairs come with their length n and the pixel of each pair;
arrays over the pixels of the row have no length of their own.
"""

import math
from typing import no_type_check

import numpy as np

from scae.rendering.jit import compiled, exp
from scae.rendering.plain import ABSENT

NEVER = -1e30
"""Score of a component that takes no part."""
BG_VALUE, BG_LOGIT, PRECISION, SHARPNESS = range(4)
"""Entries of ``scalars``: background, 1 / sigma^2, 1 / temperature."""


@compiled
@no_type_check
def weigh(n, mixing, d, scale, printed, log_weight, weight):
    """Mixture weights: weight * exp(log_weight)."""
    real = weight.dtype.type
    zero, least = real(0), real(ABSENT)
    if printed:
        for e in range(n):
            w = d[e] * mixing[e]
            weight[e] = w if w >= least else zero
            log_weight[e] = zero
    else:
        for e in range(n):
            weight[e] = d[e]
            log_weight[e] = scale * mixing[e]


@compiled
@no_type_check
def score(n, pixel, y, mean, weight, log_weight, precision, error, scores):
    """Log-weight + log-density of each covered pixel, up to a constant."""
    real = mean.dtype.type
    half, never = real(-0.5) * precision, real(NEVER)
    for e in range(n):
        error[e] = y[np.uint32(pixel[e])]
    for e in range(n):
        error[e] -= mean[e]
        scores[e] = log_weight[e] + half * error[e] * error[e] if weight[e] > 0 else never


@compiled
@no_type_check
def respond(n, pixel, score, weight, highest, share, total):
    """Unnormalised responsibilities and their sum in each pixel, safe against overflow."""
    for e in range(n):
        if weight[e] > 0:
            j = np.uint32(pixel[e])
            highest[j] = max(highest[j], score[e])
    for e in range(n):
        share[e] = score[e] - highest[np.uint32(pixel[e])]
    for e in range(n):
        share[e] = weight[e] * exp(share[e])
    total[:] = total.dtype.type(0)
    for e in range(n):
        total[np.uint32(pixel[e])] += share[e]


@compiled
@no_type_check
def begin(y, outside, value, logit, precision, highest):
    """Highest log-weight + log-density of the two components that need no template."""
    real = y.dtype.type
    half, never = real(-0.5) * precision, real(NEVER)
    for j in range(y.size):
        black = half * y[j] * y[j] if outside[j] > 0 else never
        highest[j] = max(logit + half * (y[j] - value) * (y[j] - value), black)


@compiled
@no_type_check
def finish(y, outside, value, logit, precision, highest, total, black, back):
    """Add those two components; ``total`` becomes the normaliser's inverse.

    ``black`` is the responsibility of a unit of presence that misses the pixel, ``back`` that
    of the background.
    """
    real = y.dtype.type
    zero, one, half = real(0), real(1), real(-0.5) * precision
    for j in range(y.size):
        dark = exp(min(half * y[j] * y[j] - highest[j], zero))
        rear = exp(logit + half * (y[j] - value) * (y[j] - value) - highest[j])
        inverse = one / (total[j] + outside[j] * dark + rear)
        black[j] = dark * inverse if outside[j] > 0 else zero
        back[j] = rear * inverse
        total[j] = inverse


@compiled
@no_type_check
def log_ratio(inverse1, inverse2, highest1, highest2):
    """Sum over pixels of log(total1 / total2), one logarithm for every eight pixels.

    Totals lie within 1e-17 and 1e17 (the highest component counts 1 times its presence, and
    those below 1e-16 take no part), so a float64 holds the product of eight.
    """
    result, above, below, count = 0.0, 1.0, 1.0, 0
    for j in range(inverse1.size):
        result += np.float64(highest1[j]) - np.float64(highest2[j])
        below *= np.float64(inverse1[j])
        above *= np.float64(inverse2[j])
        count += 1
        if count == 8:
            result += math.log(above / below)
            above, below, count = 1.0, 1.0, 0
    return result + math.log(above / below)


@compiled
@no_type_check
def differentiate(n, pixel, error, share1, share2, inverse1, inverse2, precision, excess, slope):
    """Gradients to log-weights (``excess``) and means (``slope``); returns -2 d/d precision."""
    for e in range(n):
        j = np.uint32(pixel[e])
        slope[e] = share1[e] * inverse1[j]
        excess[e] = slope[e] - share2[e] * inverse2[j]
    spread = error.dtype.type(0)
    for e in range(n):
        spread += slope[e] * error[e] * error[e]
        slope[e] *= error[e] * precision
    return spread


@compiled
@no_type_check
def to_mixing(n, excess, d, weight, scale, printed, gradient):
    """Add the gradient that reaches alpha (or the coupled value) through the log-weights."""
    zero = d.dtype.type(0)
    if printed:
        for e in range(n):
            gradient[e] += excess[e] * d[e] / weight[e] if weight[e] > 0 else zero
    else:
        for e in range(n):
            gradient[e] += scale * excess[e]


@compiled
@no_type_check
def unlearned(y, outside, value, precision, black1, back1, black2, back2, missing, g_scalars):
    """Gradients of the background; ``missing`` adds up those to presences that miss a pixel."""
    real = y.dtype.type
    spread, to_value, to_logit = real(0), real(0), real(0)
    for j in range(y.size):
        off = y[j] - value
        spread += outside[j] * black1[j] * y[j] * y[j] + back1[j] * off * off
        to_value += back1[j] * off
        to_logit += back1[j] - back2[j]
    for j in range(y.size):
        missing[j] += black1[j] - black2[j]
    g_scalars[BG_VALUE] += to_value * precision
    g_scalars[BG_LOGIT] += to_logit
    g_scalars[PRECISION] += 0.5 * (y.size / np.float64(precision) - np.float64(spread))


@compiled
@no_type_check
def accumulate(n, a, b, total):
    for e in range(n):
        total[e] += a[e] * b[e]


@compiled
@no_type_check
def dot(n, a, b):
    total = a.dtype.type(0)
    for e in range(n):
        total += a[e] * b[e]
    return np.float64(total)
