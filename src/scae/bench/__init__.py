"""Measured speed, in ratios that travel: a step against its own convolutions and one sgemm.

The names below are loaded when first used: the process that measures memory must hold what
training holds and nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

BATCH = 128
"""The paper's batch, at which every preset is timed, whatever it trains with."""

_HOMES = {
    "step": "scae.bench.training_step",
    "scale": "scae.bench.scaling",
    "inference": "scae.bench.inference_speed",
    "check": "scae.bench.regression",
    "record": "scae.bench.recording",
    "write_table": "scae.bench.recording",
}

__all__ = ["BATCH", "step", "scale", "inference", "check", "record", "write_table"]

if TYPE_CHECKING:
    from scae.bench.inference_speed import inference
    from scae.bench.recording import record, write_table
    from scae.bench.regression import check
    from scae.bench.scaling import scale
    from scae.bench.training_step import step


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'scae.bench' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
