"""Measured speed, in ratios that travel: a step against its own convolutions and one sgemm."""

from scae.bench.check import Verdict, check
from scae.bench.inference import InferenceBenchmark, inference
from scae.bench.record import Recorded, record, write_table
from scae.bench.scale import ScaleBenchmark, scale
from scae.bench.step import StepBenchmark, step

__all__ = [
    "InferenceBenchmark",
    "Recorded",
    "ScaleBenchmark",
    "StepBenchmark",
    "Verdict",
    "check",
    "inference",
    "record",
    "scale",
    "step",
    "write_table",
]
