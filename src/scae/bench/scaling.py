"""How the cost of a step grows with batch, capsules and canvas: one fitted exponent each."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scae import experiments
from scae.bench import BATCH
from scae.bench.provenance import Provenance, provenance
from scae.bench.timing import Spread, Work, interleave
from scae.bench.workload import BareStep, convolutions, generated_source, with_batch
from scae.config import ConstellationExperiment, Experiment, ImageExperiment

BATCHES = (32, 64, 128, 256)
PARTS = (12, 24, 48)
OBJECTS = (12, 24, 48)
CANVASES = (28, 40, 56)
SCENE_OBJECTS = (3, 6, 12)
VOTES = (4, 8, 16)
IMAGES = 2048

Edit = Callable[[int], Experiment]


@dataclass(frozen=True)
class Point:
    """A step at one size."""

    size: int
    step: Spread
    convolutions: Spread | None


@dataclass(frozen=True)
class Axis:
    """Cost along one dimension: seconds grow like size to the power of the exponent."""

    name: str
    unit: str
    points: tuple[Point, ...]
    exponent: float
    """Of the whole step; 1 is linear."""
    exponent_of_convolutions: float | None
    """Of the convolutions alone: without padding they grow faster than the canvas."""
    exponent_of_rest: float | None
    """Of the step without its convolutions; None where that difference is not positive."""

    @property
    def text(self) -> str:
        """One line for people."""
        times = ", ".join(f"{p.size}: {1e3 * p.step.median:.0f} ms" for p in self.points)
        line = f"{self.name} ({self.unit}): exponent {self.exponent:.2f}"
        if self.exponent_of_convolutions is not None:
            line += f", convolutions alone {self.exponent_of_convolutions:.2f}"
        if self.exponent_of_rest is not None:
            line += f", the rest {self.exponent_of_rest:.2f}"
        return f"{line} [{times}]"


@dataclass(frozen=True)
class ScaleBenchmark:
    """Fitted growth of a step along every dimension."""

    preset: str
    rounds: int
    axes: tuple[Axis, ...]
    provenance: Provenance

    @property
    def text(self) -> str:
        """For people."""
        head = f"{self.preset}: seconds grow like size ** exponent, {self.rounds} rounds"
        return "\n".join([head, *(f"  {a.text}" for a in self.axes), self.provenance.text])


def scale(preset: str, *, rounds: int = 8, sizes: Sequence[int] | None = None) -> ScaleBenchmark:
    """Time a step of a preset along each dimension; all sizes of one dimension take turns.

    `sizes` keeps only the given sizes of every dimension.
    """
    experiment = with_batch(experiments.preset(preset), BATCH)
    about = provenance()
    axes = []
    for name, unit, values, edit in _axes(experiment):
        kept = [v for v in values if sizes is None or v in sizes]
        if len(kept) > 1:
            axes.append(_measure(name, unit, kept, edit, rounds))
    return ScaleBenchmark(preset, rounds, tuple(axes), about)


def fitted_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Slope of log seconds over log size by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _axes(experiment: Experiment) -> list[tuple[str, str, tuple[int, ...], Edit]]:
    def batch(size: int) -> Experiment:
        return with_batch(experiment, size)

    if isinstance(experiment, ConstellationExperiment):
        points = experiment

        def scene_objects(size: int) -> Experiment:
            return replace(points, model=replace(points.model, objects=size))

        def votes(size: int) -> Experiment:
            return replace(points, model=replace(points.model, votes=size))

        return [
            ("batch", "scenes", BATCHES, batch),
            ("objects", "capsules", SCENE_OBJECTS, scene_objects),
            ("votes", "per capsule", VOTES, votes),
        ]
    images = experiment

    def parts(size: int) -> Experiment:
        return replace(images, model=replace(images.model, parts=size))

    def objects(size: int) -> Experiment:
        return replace(images, model=replace(images.model, objects=size))

    def canvas(size: int) -> Experiment:
        model = replace(images.model, image_size=(size, size))
        return replace(images, model=model, data=replace(images.data, canvas=None, shift=0))

    return [
        ("batch", "images", BATCHES, batch),
        ("parts", "capsules", PARTS, parts),
        ("objects", "capsules", OBJECTS, objects),
        ("canvas", "side in pixels; exponent over their number", CANVASES, canvas),
    ]


def _measure(name: str, unit: str, sizes: Sequence[int], edit: Edit, rounds: int) -> Axis:
    works: dict[str, Work] = {}
    for size in sizes:
        experiment = edit(size)
        works[f"step {size}"] = BareStep(experiment, generated_source(experiment, IMAGES))
        if isinstance(experiment, ImageExperiment):
            batch = experiment.training.batch
            works[f"convolutions {size}"] = convolutions(experiment.model, batch)
    spreads = {key: Spread.of(s) for key, s in interleave(works, rounds).items()}
    points = tuple(
        Point(size, spreads[f"step {size}"], spreads.get(f"convolutions {size}")) for size in sizes
    )
    lengths = [float(size * size if name == "canvas" else size) for size in sizes]
    step = [p.step.median for p in points]
    floor = [p.convolutions.median if p.convolutions else math.nan for p in points]
    rest = [s - f for s, f in zip(step, floor, strict=True)]
    # The convolutions do not depend on the number of capsules: nothing to fit there.
    grows = not math.isnan(floor[0]) and name in ("batch", "canvas")
    return Axis(
        name=name,
        unit=unit,
        points=points,
        exponent=fitted_exponent(lengths, step),
        exponent_of_convolutions=fitted_exponent(lengths, floor) if grows else None,
        exponent_of_rest=fitted_exponent(lengths, rest) if all(r > 0 for r in rest) else None,
    )
