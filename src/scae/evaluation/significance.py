"""The two-sided t-test behind the bold face of the paper's tables."""

import math
from dataclasses import dataclass

from scipy.stats import t as student

LEVEL = 0.98
"""Confidence level of the paper's bold face."""


@dataclass(frozen=True)
class Sample:
    """A table cell: mean and (n - 1) standard deviation over ``n`` seeds."""

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
    if min(first.n, second.n) < 2 or not all(map(math.isfinite, (first.sd, second.sd))):
        return Comparison(difference, None, None)
    errors = [sample.sd**2 / sample.n for sample in (first, second)]
    total = sum(errors)
    if total == 0:
        p_value = 1.0 if difference == 0 else 0.0
    else:
        # Welch-Satterthwaite degrees of freedom.
        freedom = total**2 / (errors[0] ** 2 / (first.n - 1) + errors[1] ** 2 / (second.n - 1))
        p_value = float(2 * student.sf(abs(difference) / math.sqrt(total), freedom))
    return Comparison(difference, p_value, p_value < 1 - level)
