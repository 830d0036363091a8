"""Every experiment of the paper by name: presets are functions that return complete configs."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from scae.config import Experiment
from scae.errors import ScaeError, did_you_mean
from scae.presets import paper, recommended, release
from scae.presets.ablations import ABLATIONS, ablate
from scae.presets.images import for_images, images

__all__ = ["preset", "names", "describe", "for_images", "Description"]

FUNCTIONS: tuple[Callable[[], Experiment], ...] = (
    recommended.digits,
    recommended.constellation,
    recommended.constellation_baseline,
    recommended.mnist,
    recommended.mnist40,
    recommended.svhn,
    recommended.cifar10,
    images,
    paper.constellation_paper,
    paper.mnist_paper,
    paper.mnist40_paper,
    paper.svhn_paper,
    paper.cifar10_paper,
    release.mnist_release,
    release.constellation_release,
)
PRESETS = {function.__name__.replace("_", "-"): function for function in FUNCTIONS}
ABLATED = {"mnist": recommended.mnist, "mnist40": recommended.mnist40}


@dataclass(frozen=True)
class Description:
    """One row of `scae presets`."""

    name: str
    kind: str
    """Recommended, paper, release or ablation."""
    reference: str
    summary: str
    measured: str | None
    """What it reached, from the run files in results/; None where nothing was measured."""


def names() -> list[str]:
    """Names of all presets: recommended, paper, release, then ablations."""
    return [*PRESETS, *(f"{base}/{name}" for base in ABLATED for name in ABLATIONS)]


def preset(name: str) -> Experiment:
    """The complete configuration of a named experiment."""
    if name in PRESETS:
        return PRESETS[name]()
    base, _, edit = name.partition("/")
    if base in ABLATED and edit in ABLATIONS:
        return ablate(ABLATED[base](), edit)
    hint = did_you_mean(name, names(), "`scae presets` lists them.")
    raise ScaeError(f"There is no preset {name!r}; {hint}")


def describe(name: str) -> Description:
    """Where a preset comes from, what it is, and what was measured with it."""
    reference, (base, _, edit) = preset(name).reference, name.partition("/")
    if edit:
        kind, summary = "ablation", f"{base} with {ABLATIONS[edit].row}"
    else:
        suffix = base.rpartition("-")[2]
        kind = suffix if suffix in ("paper", "release") else "recommended"
        summary = (PRESETS[name].__doc__ or "").partition("\n")[0].rstrip(".")
    return Description(name, kind, reference, summary, _measured().get(name))


@cache
def _measured() -> dict[str, str]:
    text = files("scae.presets").joinpath("measured.json").read_text(encoding="utf-8")
    rows: dict[str, str] = json.loads(text)
    return rows
