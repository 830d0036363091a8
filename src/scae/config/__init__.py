"""Every choice of an experiment as typed, validated, immutable dataclasses.

A preset (``scae.presets``) is a function that returns one of the two experiment classes; the
command line, the estimator and the tables edit fields of it and nothing else. Field
docstrings are the command line's help, so they name the paper's value.
"""

from scae.config.experiments import (
    ConstellationDataConfig,
    ConstellationExperiment,
    Experiment,
    ImageDataConfig,
    ImageExperiment,
    LossWeights,
    ModelConfig,
    OptimizerConfig,
    ScheduleConfig,
    TrainingConfig,
    differences,
    from_json,
    to_json,
)
from scae.config.models import (
    ConstellationConfig,
    Form,
    NoiseConfig,
    PoseKind,
    SetTransformerConfig,
    StackedConfig,
)

__all__ = [
    "ConstellationConfig",
    "ConstellationDataConfig",
    "ConstellationExperiment",
    "Experiment",
    "Form",
    "ImageDataConfig",
    "ImageExperiment",
    "LossWeights",
    "ModelConfig",
    "NoiseConfig",
    "OptimizerConfig",
    "PoseKind",
    "ScheduleConfig",
    "SetTransformerConfig",
    "StackedConfig",
    "TrainingConfig",
    "differences",
    "from_json",
    "to_json",
]
