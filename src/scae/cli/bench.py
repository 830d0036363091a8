"""`scae bench step|scale|inference|check|record|table`: measured speed, in ratios that travel."""

from dataclasses import dataclass
from pathlib import Path

from scae.bench import BATCH
from scae.cli.options import DataDir, Source, choose, parse
from scae.cli.output import results_only, show

ACTIONS = {
    "step": "one training step against its convolutions alone",
    "scale": "cost against batch, parts, objects and canvas",
    "inference": "images per second for presences of a data set",
    "check": "fail if a step has become slower than the committed ratio",
    "record": "measure everything and write the folder benchmarks, on an idle machine",
    "table": "generate the table of the folder benchmarks again",
}


@dataclass(frozen=True)
class Step:
    """Time one full training step and the convolution stack alone, interleaved."""

    preset: str = "mnist"
    """Preset whose step is timed."""
    batch: int = BATCH
    """Examples per step; the same for all presets, so that they compare."""
    rounds: int = 30
    """Interleaved rounds; medians and spread are reported."""
    memory: bool = True
    """Also train a few steps in a fresh process for its peak memory."""
    json: bool = False
    """Print JSON."""


@dataclass(frozen=True)
class Scale:
    """Time a training step at several batch sizes, numbers of capsules and canvases."""

    preset: str = "mnist"
    """Preset to vary."""
    rounds: int = 8
    """Interleaved rounds."""
    json: bool = False
    """Print JSON."""


@dataclass(frozen=True)
class Inference:
    """Time the presences of a whole data set."""

    source: Source = "mnist"
    """Run folder, weights file or name of a shipped model."""
    data_dir: DataDir = None
    """Folder of data sets; default: SCAE_DATA, else generated images."""
    examples: int | None = None
    """At most this many images; default: the whole data set."""
    json: bool = False
    """Print JSON."""


@dataclass(frozen=True)
class Check:
    """Compare a step's ratio to its convolutions with a committed one; exit code 2 if worse."""

    against: Path = Path("benchmarks/committed.json")
    """File with the committed ratios."""
    tolerance: float = 0.4
    """Accepted growth of the ratio."""
    json: bool = False
    """Print JSON."""


@dataclass(frozen=True)
class Table:
    """Generate README.md of the folder from its dated files."""

    folder: Path = Path("benchmarks")
    """Folder of dated files."""
    json: bool = False
    """Print JSON."""


@dataclass(frozen=True)
class Record(Table):
    """Measure steps, growth and inference; write dated files, committed ratios and table."""

    rounds: int = 30
    """Interleaved rounds."""
    data_dir: DataDir = None
    """Folder of data sets; default: SCAE_DATA, else generated images."""


def command(arguments: list[str]) -> None:
    """Choose what to measure."""
    action, rest = choose(arguments, "bench", ACTIONS)
    shown = f"bench {action}"
    if action == "step":
        step = parse(Step, rest, shown)
        with results_only(step.json):
            from scae import bench

            result = bench.step(
                step.preset, batch=step.batch, rounds=step.rounds, memory=step.memory
            )
        show(result, result.text, step.json)
    elif action == "scale":
        scale = parse(Scale, rest, shown)
        with results_only(scale.json):
            from scae import bench

            scaling = bench.scale(scale.preset, rounds=scale.rounds)
        show(scaling, scaling.text, scale.json)
    elif action == "inference":
        inference = parse(Inference, rest, shown)
        with results_only(inference.json):
            from scae import bench

            speed = bench.inference(
                inference.source, data_dir=inference.data_dir, examples=inference.examples
            )
        show(speed, speed.text, inference.json)
    elif action == "record":
        wanted = parse(Record, rest, shown)
        with results_only(wanted.json):
            from scae import bench

            recorded = bench.record(wanted.folder, rounds=wanted.rounds, data_dir=wanted.data_dir)
        show(recorded, recorded.text, wanted.json)
    elif action == "table":
        folder = parse(Table, rest, shown)
        with results_only(folder.json):
            from scae import bench

            path = bench.write_table(folder.folder)
        show({"file": path}, f"Wrote {path}", folder.json)
    else:
        check = parse(Check, rest, shown)
        with results_only(check.json):
            from scae import bench

            verdict = bench.check(check.against, check.tolerance)
        show(verdict, verdict.text, check.json)
