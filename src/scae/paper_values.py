"""Every number of the paper's tables 1 and 2 and of section 3.1, in per cent, as printed."""

from dataclasses import dataclass

TABLE1_RUNS = 5
TABLE2_RUNS = 10


@dataclass(frozen=True)
class PaperValue:
    """A printed number; deviation and number of runs where the paper gives them."""

    mean: float
    sd: float | None = None
    n: int | None = None
    note: str = ""
    digits: int = 1
    """Decimals of the mean as printed."""
    sd_digits: int = 1

    @property
    def text(self) -> str:
        """Mean and, in brackets, standard deviation."""
        mean = f"{self.mean:.{self.digits}f}"
        spread = "" if self.sd is None else f" ({self.sd:.{self.sd_digits}f})"
        return f"{mean}{spread}{f', {self.note}' if self.note else ''}"


@dataclass(frozen=True)
class Method:
    """A row of table 1 that is not ours to train."""

    name: str
    source: str
    values: dict[str, PaperValue]
    """By data set; a missing one is printed as a dash."""


def _other(mean: float, sd: float | None = None, digits: int = 1) -> PaperValue:
    # Taken by the paper from other papers, whose numbers of runs it does not give.
    return PaperValue(mean, sd, None, digits=digits)


TABLE1_OTHERS = (
    Method(
        "KMEANS",
        "Haeusser et al. 2018",
        {"mnist": _other(53.49, digits=2), "cifar10": _other(20.8), "svhn": _other(12.5)},
    ),
    Method(
        "AE", "Bengio et al. 2007, from Ji et al.", {"mnist": _other(81.2), "cifar10": _other(31.4)}
    ),
    Method(
        "GAN",
        "Radford et al. 2016, from Ji et al.",
        {"mnist": _other(82.8), "cifar10": _other(31.5)},
    ),
    Method(
        "IMSAT",
        "Hu et al. 2017; data augmentation, ImageNet features",
        {"mnist": _other(98.4, 0.4), "cifar10": _other(45.6, 0.8), "svhn": _other(57.3, 3.9)},
    ),
    Method(
        "IIC",
        "Ji et al. 2018; data augmentation",
        {"mnist": _other(98.4, 0.6), "cifar10": _other(57.6, 5.0)},
    ),
    Method(
        "ADC",
        "Haeusser et al. 2018; data augmentation",
        {"mnist": _other(98.7, 0.6), "cifar10": _other(29.3, 1.5), "svhn": _other(38.6, 4.1)},
    ),
)


def _table1(mean: float, sd: float, digits: int = 1) -> PaperValue:
    return PaperValue(mean, sd, TABLE1_RUNS, digits=digits, sd_digits=2 if sd < 0.4 else 1)


TABLE1_LIN_MATCH = {
    "mnist": _table1(98.7, 0.35),
    "cifar10": _table1(25.01, 1.0, 2),
    "svhn": _table1(55.33, 3.4, 2),
}
TABLE1_LIN_PRED = {
    "mnist": _table1(99.0, 0.07),
    "cifar10": PaperValue(33.48, 0.3, TABLE1_RUNS, digits=2),
    "svhn": _table1(67.27, 4.5, 2),
}

# Mean and standard deviation on MNIST, 40x40 MNIST and affNIST; keys are names of ablations.
_TABLE2: dict[str, tuple[tuple[float, float], tuple[float, float], tuple[float, float]]] = {
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
TABLE2_COLUMNS = ("mnist", "mnist40", "affnist")
TABLE2 = {
    row: {
        column: PaperValue(mean, sd, TABLE2_RUNS, digits=2 if mean == 25.29 else 1, sd_digits=2)
        for column, (mean, sd) in zip(TABLE2_COLUMNS, values, strict=True)
    }
    for row, values in _TABLE2.items()
}

# Section 3.1: errors of the best models of a search, not means over seeds.
CONSTELLATIONS = {
    "full": PaperValue(2.8, note="best; consistently below 4"),
    "no-two-parts": PaperValue(10.0, note="about", digits=0),
    "baseline": PaperValue(26.0, note="best", digits=0),
}
