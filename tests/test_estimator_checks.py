"""Scikit-learn's own checks of estimators.

The clusterer gets all of them. The segmenter takes scenes of points, not tables, so that
scikit-learn itself leaves out every check that fits: only those of parameters, tags and
cloning run.
"""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from small_estimators import EXPERIMENT, FeatureClusterer, segmenter

# Checks that do not apply, and why: `parametrize_with_checks` marks them xfail.
NOT_APPLICABLE = {
    "check_clustering": "gives negative numbers even to estimators tagged positive_only; "
    "tests/test_estimator.py checks labels_, fit_predict and repeatability on images",
}


def _expected(estimator: Any) -> dict[str, str]:
    return NOT_APPLICABLE if isinstance(estimator, FeatureClusterer) else {}


@pytest.mark.filterwarnings("ignore:The examples hold fewer")
@pytest.mark.filterwarnings("ignore:Clustering into one cluster")
@pytest.mark.filterwarnings("ignore:Can't test estimator")
@parametrize_with_checks(
    [
        FeatureClusterer(n_clusters=2, experiment=EXPERIMENT, random_state=0, device="cpu"),
        segmenter(),
    ],
    expected_failed_checks=_expected,
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)
