"""LIN-PRED: a linear classifier on presences, trained with labels (section 3.2)."""

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

MAX_ITERATIONS = 300


@dataclass(frozen=True)
class LinearProbe:
    """Softmax regression with K * C weights and C biases, and nothing else.

    It is fitted on standardised features, which only conditions the problem: the shift and
    scale are folded into ``weights`` and ``biases``, so it applies to presences as they are.
    """

    weights: Float[np.ndarray, "classes features"]
    biases: Float[np.ndarray, " classes"]
    classes: Int[np.ndarray, " classes"]

    @property
    def parameters(self) -> int:
        """K * C + C."""
        return self.weights.size + self.biases.size

    def predict(self, features: Float[np.ndarray, "n features"]) -> Int[np.ndarray, " n"]:
        """The most probable class of each row."""
        scores = features @ self.weights.T.astype(features.dtype) + self.biases
        return self.classes[scores.argmax(axis=1)]

    def accuracy(
        self, features: Float[np.ndarray, "n features"], labels: Int[np.ndarray, " n"]
    ) -> float:
        """Share of rows whose most probable class is their label."""
        return float(np.mean(self.predict(features) == labels))


def fit_probe(
    features: Float[np.ndarray, "n features"], labels: Int[np.ndarray, " n"]
) -> LinearProbe:
    """Fit by L-BFGS with the weakest useful regularisation (C = 1 on the summed loss)."""
    classes = np.unique(labels)
    if len(classes) == 1:
        warnings.warn(
            "The labels hold a single class, so LIN-PRED always predicts it.", stacklevel=2
        )
        return LinearProbe(np.zeros((1, features.shape[1])), np.zeros(1), classes)
    mean = features.mean(axis=0, dtype=np.float64)
    spread = features.std(axis=0, dtype=np.float64)
    # A dead capsule's constant presence carries nothing; dividing by its spread would.
    spread = np.where(spread > 1e-6, spread, 1.0)
    standardised = (features - mean) / spread
    with warnings.catch_warnings():
        # Stopping early costs a fraction of a per cent of accuracy, not correctness.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=MAX_ITERATIONS).fit(standardised, labels)
    weights, biases = model.coef_, model.intercept_
    if len(classes) == 2:  # scikit-learn keeps only the second class's row
        weights, biases = np.stack([-weights[0], weights[0]]) / 2, np.array([-1, 1]) * biases / 2
    weights = weights / spread
    return LinearProbe(weights, biases - weights @ mean, classes)
