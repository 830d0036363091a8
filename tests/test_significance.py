"""The t-test of the tables against scipy's on the raw values."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from scae.evaluation import Sample, welch_test


def sample(values: np.ndarray) -> Sample:
    return Sample(float(values.mean()), float(values.std(ddof=1)), len(values))


@pytest.mark.parametrize("seed", range(5))
def test_equals_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.normal(98, 0.5, 5), rng.normal(97.5, 2, 10)
    theirs = ttest_ind(first, second, equal_var=False)
    ours = welch_test(sample(first), sample(second))
    assert ours.p_value == pytest.approx(theirs.pvalue)
    assert ours.significant == (theirs.pvalue < 0.02)
    assert ours.difference == pytest.approx(first.mean() - second.mean())


def test_level_lies_at_two_per_cent() -> None:
    # p of this pair is between 0.02 and 0.05: significant at 95 %, not at the paper's 98 %.
    first, second = Sample(1.0, 1.0, 10), Sample(-0.1, 1.0, 10)
    assert welch_test(first, second).significant is False
    assert welch_test(first, second, level=0.95).significant is True


def test_below_two_seeds_there_is_no_answer() -> None:
    one = welch_test(Sample(98.7, float("nan"), 1), Sample(95.0, 0.3, 5))
    assert (one.p_value, one.significant, str(one)) == (None, None, "n/a")
    assert one.difference == pytest.approx(3.7)


def test_without_spread() -> None:
    assert welch_test(Sample(1.0, 0.0, 3), Sample(1.0, 0.0, 3)).significant is False
    assert welch_test(Sample(1.0, 0.0, 3), Sample(2.0, 0.0, 3)).significant is True
