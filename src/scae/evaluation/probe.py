"""LIN-PRED: a linear classifier on presences, trained with labels (section 3.2)."""

import warnings

import numpy as np
from jaxtyping import Float, Int
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

MAX_ITERATIONS = 300


def fit_probe(features: Float[np.ndarray, "n features"], labels: Int[np.ndarray, " n"]) -> Pipeline:
    """Softmax regression on standardised features: K * C weights and C biases."""
    if len(np.unique(labels)) == 1:
        warnings.warn(
            "The labels hold a single class, so LIN-PRED always predicts it.", stacklevel=2
        )
        return make_pipeline(DummyClassifier()).fit(features, labels)
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=MAX_ITERATIONS))
    with warnings.catch_warnings():
        # Stopping early costs a fraction of a per cent of accuracy, not correctness.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return probe.fit(features.astype(np.float64), labels)
