"""Every experiment of the paper by name: presets are functions that return complete configs."""

import difflib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal

from scae.config import Experiment, ImageExperiment
from scae.errors import ScaeError
from scae.presets import paper, recommended, release
from scae.presets.ablations import ABLATIONS, ablate
from scae.presets.images import for_images, images

__all__ = ["preset", "names", "describe", "for_images", "Description"]

Kind = Literal["recommended", "paper", "release", "ablation"]

RECOMMENDED: dict[str, Callable[[], Experiment]] = {
    "digits": recommended.digits,
    "constellation": recommended.constellation,
    "constellation-baseline": recommended.constellation_baseline,
    "mnist": recommended.mnist,
    "mnist40": recommended.mnist40,
    "svhn": recommended.svhn,
    "cifar10": recommended.cifar10,
    "images": images,
}
PAPER: dict[str, Callable[[], Experiment]] = {
    "constellation-paper": paper.constellation_paper,
    "mnist-paper": paper.mnist_paper,
    "mnist40-paper": paper.mnist40_paper,
    "svhn-paper": paper.svhn_paper,
    "cifar10-paper": paper.cifar10_paper,
}
RELEASE: dict[str, Callable[[], Experiment]] = {
    "mnist-release": release.mnist_release,
    "constellation-release": release.constellation_release,
}
ABLATED: dict[str, Callable[[], ImageExperiment]] = {
    "mnist": recommended.mnist,
    "mnist40": recommended.mnist40,
}


@dataclass(frozen=True)
class Description:
    """One row of `scae presets`."""

    name: str
    kind: Kind
    reference: str
    summary: str
    measured: str | None
    """What it reached, from the run files in results/; None where nothing was measured."""


def names() -> list[str]:
    """Names of all presets: recommended, paper, release, then ablations."""
    ablations = [f"{base}/{name}" for base in ABLATED for name in ABLATIONS]
    return [*RECOMMENDED, *PAPER, *RELEASE, *ablations]


def preset(name: str) -> Experiment:
    """The complete configuration of a named experiment."""
    if function := _functions().get(name):
        return function()
    base, _, edit = name.partition("/")
    if base in ABLATED and edit in ABLATIONS:
        return replace(ablate(ABLATED[base](), edit), name=name)
    near = difflib.get_close_matches(name, names(), 1)
    hint = f"did you mean {near[0]!r}?" if near else "`scae presets` lists them."
    raise ScaeError(f"There is no preset {name!r}; {hint}")


def describe(name: str) -> Description:
    """Where a preset comes from, what it is, and what was measured with it."""
    experiment = preset(name)
    if function := _functions().get(name):
        summary = (function.__doc__ or "").partition("\n")[0].rstrip(".")
    else:
        base, _, edit = name.partition("/")
        summary = f"{base} with {ABLATIONS[edit].row}"
    return Description(name, _kind(name), experiment.reference, summary, _measured().get(name))


@cache
def _measured() -> dict[str, str]:
    text = files("scae.presets").joinpath("measured.json").read_text(encoding="utf-8")
    rows: dict[str, str] = json.loads(text)
    return rows


def _functions() -> dict[str, Callable[[], Experiment]]:
    return {**RECOMMENDED, **PAPER, **RELEASE}


def _kind(name: str) -> Kind:
    if name in RECOMMENDED:
        return "recommended"
    if name in PAPER:
        return "paper"
    return "release" if name in RELEASE else "ablation"
