"""The paper's numbers of its models and of k-means (tables 1 and 2, section 3.1), in per cent."""

from dataclasses import dataclass

TABLE1_RUNS, TABLE2_RUNS = 5, 10


@dataclass(frozen=True)
class PaperValue:
    """A printed number; deviation and number of runs where the paper gives them."""

    mean: float | int
    sd: float | None = None
    n: int | None = None
    note: str = ""

    @property
    def text(self) -> str:
        """Mean and, in brackets, standard deviation."""
        spread = "" if self.sd is None else f" ({self.sd})"
        return f"{self.mean}{spread}{f', {self.note}' if self.note else ''}"


TABLE1_KMEANS = {
    "mnist": PaperValue(53.49),
    "cifar10": PaperValue(20.8),
    "svhn": PaperValue(12.5),
}
TABLE1_LIN_MATCH = {
    "mnist": PaperValue(98.7, 0.35, TABLE1_RUNS),
    "cifar10": PaperValue(25.01, 1.0, TABLE1_RUNS),
    "svhn": PaperValue(55.33, 3.4, TABLE1_RUNS),
}
TABLE1_LIN_PRED = {
    "mnist": PaperValue(99.0, 0.07, TABLE1_RUNS),
    "cifar10": PaperValue(33.48, 0.3, TABLE1_RUNS),
    "svhn": PaperValue(67.27, 4.5, TABLE1_RUNS),
}

# Mean and standard deviation on MNIST, 40x40 MNIST and affNIST; keys are names of ablations.
TABLE2_COLUMNS = ("mnist", "mnist40", "affnist")
_TABLE2 = {
    "full": ((95.3, 4.65), (98.7, 0.35), (92.2, 0.59)),
    "no-posterior-sparsity": ((97.5, 1.55), (95.0, 7.20), (85.3, 11.67)),
    "no-prior-sparsity": ((72.4, 22.39), (88.2, 6.98), (71.3, 5.46)),
    "no-sparsity": ((84.7, 3.01), (82.0, 5.46), (59.0, 5.66)),
    "no-object-noise": ((96.7, 2.30), (98.5, 0.12), (93.5, 0.38)),
    "no-noise": ((93.1, 5.09), (78.5, 22.69), (64.1, 26.74)),
    "no-part-noise": ((93.9, 7.16), (82.8, 24.83), (70.7, 25.96)),
    "similarity": ((97.5, 1.55), (95.9, 1.59), (88.9, 1.58)),
    "no-deformations": ((87.3, 21.48), (87.2, 18.54), (79.0, 22.44)),
    "linear-part-encoder": ((98.0, 0.52), (63.2, 31.47), (50.8, 26.46)),
    "conv-part-encoder": ((97.6, 1.22), (97.8, 0.98), (81.6, 1.66)),
    "mlp-object-encoder": ((27.1, 9.03), (36.3, 3.70), (25.29, 3.69)),
    "no-special-features": ((90.7, 2.25), (58.7, 31.60), (44.5, 21.71)),
}
TABLE2 = {
    row: {
        column: PaperValue(mean, sd, TABLE2_RUNS)
        for column, (mean, sd) in zip(TABLE2_COLUMNS, values, strict=True)
    }
    for row, values in _TABLE2.items()
}

# Section 3.1: errors of the best models of a search, not means over seeds.
CONSTELLATIONS = {
    "full": PaperValue(2.8, note="best; consistently below 4"),
    "no-two-parts": PaperValue(10, note="about"),
    "baseline": PaperValue(26, note="best"),
}
