"""The two-sided t-test behind the bold face of the paper's tables."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import ttest_ind_from_stats

LEVEL = 0.98
"""Confidence level of the paper's bold face."""


@dataclass(frozen=True)
class Sample:
    """A table cell: mean and (n - 1) standard deviation over `n` seeds."""

    mean: float
    sd: float
    n: int


@dataclass(frozen=True)
class Comparison:
    """Outcome of a two-sided Welch test; None in every field that too few seeds leave open."""

    difference: float
    """First mean minus second."""
    p_value: float | None
    """Probability of a difference at least this large if both means were equal."""
    significant: bool | None
    """Whether the means differ at the 98 % level."""

    def __str__(self) -> str:
        if self.p_value is None:
            return "n/a"
        return f"{'differs' if self.significant else 'no difference'} (p = {self.p_value:.3g})"


def welch_test(first: Sample, second: Sample, level: float = LEVEL) -> Comparison:
    """Compare two cells without assuming equal variances; "n/a" below two seeds in either."""
    difference = first.mean - second.mean
    if min(first.n, second.n) < 2 or not np.isfinite([first.sd, second.sd]).all():
        return Comparison(difference, None, None)
    if first.sd == second.sd == 0:
        p_value = float(difference == 0)
    else:
        cells = (first.mean, first.sd, first.n, second.mean, second.sd, second.n)
        p_value = float(ttest_ind_from_stats(*cells, equal_var=False).pvalue)
    return Comparison(difference, p_value, p_value < 1 - level)
