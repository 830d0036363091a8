"""One training step against its convolutions alone and one matrix product, in one run."""

import time
from dataclasses import dataclass

from scae import experiments
from scae.bench import BATCH
from scae.bench.memory import peak_of_training
from scae.bench.provenance import Provenance, provenance
from scae.bench.timing import Spread, Work, interleave
from scae.bench.workload import (
    IMAGES,
    BareStep,
    convolutions,
    generated_source,
    sgemm,
    with_batch,
)
from scae.config import ImageExperiment


@dataclass(frozen=True)
class StepBenchmark:
    """Seconds of a training step, and what they are worth on any machine."""

    preset: str
    batch: int
    canvas: tuple[int, int] | None
    """Height and width of the images; None for point sets."""
    parts: int | None
    objects: int
    parameters: int
    step: Spread
    """Batch, forward, all losses, backward, update."""
    convolutions: Spread | None
    """The convolutions of the part encoder alone; None for a model that has none."""
    sgemm: Spread
    """One 1024 x 1024 x 1024 float32 matrix product."""
    ratio_to_convolutions: float | None
    """Median step over median convolutions."""
    ratio_to_sgemm: float
    """Median step over median matrix product."""
    first_step_seconds: float
    """The first step, with whatever is compiled or loaded on the way."""
    peak_rss_mb: float | None
    """Peak resident memory of a fresh process that trains this preset; None if not measured."""
    provenance: Provenance

    @property
    def text(self) -> str:
        """For people."""
        lines = [
            f"{self.preset}, batch {self.batch}, {self.parameters / 1e6:.2f} M parameters",
            f"  step          {self.step.text}, {self.step.rounds} rounds",
        ]
        if self.convolutions is not None:
            lines.append(f"  convolutions  {self.convolutions.text}")
        lines.append(f"  sgemm 1024^3  {self.sgemm.text}")
        if self.ratio_to_convolutions is not None:
            lines.append(f"  ratio to convolutions  {self.ratio_to_convolutions:.2f}")
        lines.append(f"  ratio to sgemm         {self.ratio_to_sgemm:.2f}")
        lines.append(f"  first step             {self.first_step_seconds:.2f} s")
        if self.peak_rss_mb is not None:
            lines.append(f"  peak memory            {self.peak_rss_mb:.0f} MB")
        lines.append(self.provenance.text)
        return "\n".join(lines)


def step(
    preset: str,
    *,
    batch: int = BATCH,
    rounds: int = 30,
    memory: bool = True,
    images: int = IMAGES,
) -> StepBenchmark:
    """Time one full training step of a preset on the CPU, interleaved with its floors.

    `images` is the number of generated images that batches are drawn from.
    """
    experiment = with_batch(experiments.preset(preset), batch)
    about = provenance()
    size = experiment.training.batch
    # Before anything is timed: the other process would take the cores.
    peak = peak_of_training(preset, batch, images) if memory else None
    training = BareStep(experiment, generated_source(experiment, images))
    begin = time.perf_counter()
    training()
    first = time.perf_counter() - begin
    works: dict[str, Work] = {"step": training, "sgemm": sgemm()}
    images_model = experiment.model if isinstance(experiment, ImageExperiment) else None
    if images_model is not None:
        works["convolutions"] = convolutions(images_model, size)
    seconds = {name: Spread.of(s) for name, s in interleave(works, rounds).items()}
    floor = seconds.get("convolutions")
    median = seconds["step"].median
    return StepBenchmark(
        preset=preset,
        batch=size,
        canvas=None if images_model is None else images_model.image_size,
        parts=None if images_model is None else images_model.parts,
        objects=experiment.model.objects,
        parameters=training.parameter_count,
        step=seconds["step"],
        convolutions=floor,
        sgemm=seconds["sgemm"],
        ratio_to_convolutions=None if floor is None else median / floor.median,
        ratio_to_sgemm=median / seconds["sgemm"].median,
        first_step_seconds=first,
        peak_rss_mb=peak,
        provenance=about,
    )
