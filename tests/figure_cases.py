"""Small models of every family with fixed weights and data; run to renew the baseline images."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from scae import figures
from scae.config import Experiment
from scae.data import ImageData, Scenes, scenes
from scae.models import build
from training_runs import images_experiment, points_experiment

FAMILIES = ("stacked", "sobel", "constellation", "baseline")
SIDE = 12


@dataclass(frozen=True)
class Case:
    """A model with data it can look at."""

    model: Any
    experiment: Experiment
    data: Any
    metrics: dict[str, list[float]]


def make_case(family: str) -> Case:
    """A model with fixed random weights; nothing here is trained."""
    experiment = _experiment(family)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = build(experiment.model).eval()
        if family in ("stacked", "sobel"):
            _draw_strokes(model)
    data = _images(experiment.model.channels) if family in ("stacked", "sobel") else _scenes()
    return Case(model, experiment, data, _metrics())


def _experiment(family: str) -> Experiment:
    if family in ("constellation", "baseline"):
        points = points_experiment()
        decoder = "capsules" if family == "constellation" else "baseline"
        return replace(points, model=replace(points.model, decoder=decoder))
    experiment = images_experiment()
    if family == "sobel":
        color = replace(experiment.model, channels=3, target="sobel", alpha="coupled")
        return replace(experiment, model=color)
    return experiment


def _draw_strokes(model: Any) -> None:
    """Templates that look like something: bars at different angles."""
    size = model.config.template_size
    y, x = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    with torch.no_grad():
        for m, template in enumerate(model.templates.logits):
            angle = torch.tensor(m * 0.7)
            distance = (x * angle.cos() + y * angle.sin()).abs()
            template.copy_(6 * (0.35 - distance).expand_as(template))
        model.part_encoder.pool.bias[..., -1] += (
            1.5 * torch.linspace(-1, 1, model.config.parts)[:, None]
        )


def _images(channels: int) -> ImageData:
    """Bars at an angle that gives the class."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    labels = np.arange(80) % 4
    images = []
    for label in labels:
        angle = label * np.pi / 4 + rng.normal(0, 0.1)
        distance = np.abs(x * np.cos(angle) + y * np.sin(angle) + rng.normal(0, 0.15))
        images.append(np.repeat((255 * np.clip(1.3 - 3 * distance, 0, 1))[None], channels, 0))
    pixels = torch.from_numpy(np.stack(images)).to(torch.uint8)
    return ImageData(pixels, torch.from_numpy(labels), "bars", "test")


@cache
def _scenes() -> Scenes:
    return scenes(points_experiment().data, 5, 60)


def _metrics() -> dict[str, list[float]]:
    steps = np.arange(1, 121)
    noise = np.random.default_rng(1).normal(0, 1, (4, 120))
    return {
        "step": steps.tolist(),
        "seconds": (0.2 * steps).tolist(),
        "lr": (1e-3 * np.cos(steps / 80)).tolist(),
        "loss": (100 / steps + noise[0]).tolist(),
        "part_ll": (np.log(steps) + 0.2 * noise[1]).tolist(),
        "prior_within": np.abs(noise[2]).tolist(),
        "prior_between": np.abs(2 + noise[3]).tolist(),
        "two_parts": [0.0] * 120,
    }


def baseline_figures() -> dict[str, Callable[[], Figure]]:
    """The figures kept as images, each from fixed inputs."""

    def decomposition(family: str) -> figures.Decomposition:
        case = make_case(family)
        return figures.decompose(case.model, case.data.floats(0, 4))

    def templates() -> Figure:
        model = make_case("stacked").model
        drawn = figures.drawn_alone(model)
        return figures.templates_figure(model.templates.templates().detach().numpy(), drawn)

    def sweep() -> Figure:
        case = make_case("stacked")
        return figures.image_sweep_figure(case.model, case.data.floats(0, 4))

    def segmented() -> figures.SegmentedScenes:
        case = make_case("constellation")
        found = case.data
        return figures.segment_scenes(case.model, found.points, found.presence, found.pattern_id)

    def point_sweep() -> Figure:
        case = make_case("constellation")
        return figures.point_sweep_figure(case.model, case.data.points, case.data.presence)

    return {
        "reconstructions": lambda: figures.reconstructions_figure(decomposition("stacked")),
        "edges": lambda: figures.edges_figure(decomposition("sobel")),
        "templates": templates,
        "object-sweep": sweep,
        "constellations": lambda: figures.constellations_figure(segmented(), [0, 1, 2], [4]),
        "point-sweep": point_sweep,
        "confusion": lambda: figures.confusion_figure(
            np.array([[9, 1, 0, 0], [2, 7, 1, 2], [0, 0, 5, 0]]), ("cat", "dog", "horse")
        ),
        "curves": lambda: figures.curves_figure(_metrics()),
    }


def _renew(folder: Path) -> None:
    """Write baseline images at the size they are compared at."""
    from PIL import Image

    for name, draw in baseline_figures().items():
        png = figures.save(draw(), folder, name)[0]
        png.with_suffix(".svg").unlink()
        with Image.open(png) as image:
            small = image.convert("RGB")
        if small.width > 640:
            small = small.resize((640, round(640 * small.height / small.width)), Image.BOX)
        small.save(png, optimize=True)


if __name__ == "__main__":
    _renew(Path(__file__).parent / "baseline")
