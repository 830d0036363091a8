"""Other implementations' figures, measured on one machine before this package existed."""

from dataclasses import dataclass

PROVENANCE = (
    "Measured 16 Nov 2026 on an idle 2-core Xeon at 2.8 GHz (AVX-512, no AMX): forward, loss, "
    "backward and update at batch 128 with 2 threads; medians of two interleaved rounds, both "
    "given. On that machine the four convolutions alone took 0.068 s at 28×28 and 0.180 s at "
    "40×40, and one 1024³ sgemm 10.5 ms (205 GFLOP/s); their ratios use these."
)
CONVOLUTIONS = {28: 0.068, 40: 0.180}
SGEMM = 2 * 1024**3 / 205e9


@dataclass(frozen=True)
class Rival:
    """One row: seconds per step of the two rounds."""

    name: str
    setting: str
    seconds: tuple[float, float]
    peak_rss_mb: int
    parameters: float
    """In millions."""
    canvas: int | None

    @property
    def middle(self) -> float:
        return sum(self.seconds) / 2

    @property
    def ratio_to_convolutions(self) -> float | None:
        """Against the floor of the same machine; None for point sets."""
        return None if self.canvas is None else self.middle / CONVOLUTIONS[self.canvas]

    @property
    def ratio_to_sgemm(self) -> float:
        return self.middle / SGEMM


RIVALS = (
    Rival("torch-scae (PyTorch)", "40/40/32", (1.16, 0.92), 1721, 3.53, 40),
    Rival("authors' code (TensorFlow 1.15)", "40/40/32", (2.07, 1.86), 3048, 3.54, 40),
    Rival("torch-scae (PyTorch)", "28/24/24", (0.286, 0.332), 1083, 2.41, 28),
    Rival("stacked-capsule-networks (smaller model)", "28/24/24", (0.305, 0.390), 630, 0.62, 28),
    Rival("a notebook port (smaller model)", "28/24/24", (0.347, 0.394), 737, 0.63, 28),
    Rival("authors' code (TensorFlow 1.15)", "28/24/24", (0.931, 0.981), 1849, 2.42, 28),
    Rival("authors' code (TensorFlow 1.15)", "constellation", (0.101, 0.140), 623, 0.59, None),
)
