"""Score the checkpoints of a run: scores against steps and minutes.

    scae train mnist --training.keep 1000 --training.checkpoint-every 1000
    python results/curve.py runs/mnist mnist-seed0

Writes results/curves/NAME.csv, one row per checkpoint: LIN-MATCH and LIN-PRED of the averaged
weights' prior presences on test images, or the segmentation error. Steps that the file has
already are kept, so it can be called again while the training goes on. `--literal` also writes
results/literal/NAME.json, the record of a run that need not be finished: steps done, rate, estimate
of the rest, log-likelihoods over the steps, scores.
"""

import argparse
import csv
import io
import math
from pathlib import Path
from typing import Any

import torch

from scae import config, files
from scae.config import ConstellationExperiment, Experiment
from scae.data import load_images, load_scenes
from scae.evaluation import segmentation_error
from scae.evaluation.clustering import fit_probe, lin_match
from scae.evaluation.evaluate import SCENES_SEED
from scae.inference import presences, segment
from scae.models import (
    CapsuleModel,
    ConstellationAutoencoder,
    StackedCapsuleAutoencoder,
    build,
)
from scae.training import read_metrics

HERE = Path(__file__).parent
SCENES = 2000
LOGGED = ("image_ll", "part_ll", "two_parts")
"""Columns of a run's metrics that a literal run's record keeps, as means of LOGGED_EVERY steps."""
LOGGED_EVERY = 500

Row = dict[str, float]


def scores(model: CapsuleModel, experiment: Experiment, data_dir: Path | None) -> Row:
    """Scores of a model as fractions, by column."""
    if isinstance(experiment, ConstellationExperiment):
        assert isinstance(model, ConstellationAutoencoder)
        scenes = load_scenes(experiment.data, SCENES_SEED, SCENES)
        assert scenes.pattern_id is not None
        found = segment(model, scenes.points, scenes.presence)
        labels, presence = scenes.pattern_id.numpy(), scenes.presence.numpy()
        return {"segmentation_error": segmentation_error(found, labels, presence)}
    assert isinstance(model, StackedCapsuleAutoencoder)
    sets = []
    for split in ("train", "test"):
        images = load_images(experiment.data, split, data_dir)
        assert images.labels is not None
        sets.append((presences(model, images.images)[0], images.labels.numpy()))
    train, test = sets
    clusters = len(set(train[1].tolist()))
    return {
        "lin_match": lin_match(train, test, clusters).accuracy,
        "lin_pred": fit_probe(*train).score(*test),
    }


def curve(run: Path, path: Path, data_dir: Path | None = None) -> list[Row]:
    """Add the checkpoints of a run to a CSV file; returns all its rows."""
    rows: dict[int, Row] = {}
    if path.is_file():
        with open(path, newline="") as file:
            known = [
                {name: float(cell) for name, cell in row.items()} for row in csv.DictReader(file)
            ]
        rows = {int(row["step"]): row for row in known}
    experiment = config.from_json((run / "config.json").read_bytes(), str(run / "config.json"))
    model = build(experiment.model)
    for checkpoint in sorted((run / "checkpoints").glob("step*.ckpt")):
        step = int(checkpoint.stem.removeprefix("step"))
        if step in rows:
            continue
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
        # With averaging on, Lightning's `state_dict` holds the averaged weights.
        weights = state["state_dict"].items()
        model.load_state_dict({name.removeprefix("model."): x for name, x in weights})
        seconds = state["callbacks"]["Timer"]["time_elapsed"]["train"]
        found = scores(model, experiment, data_dir)
        rows[step] = {"step": step, "minutes": round(seconds / 60, 4)}
        rows[step] |= {name: round(value, 5) for name, value in found.items()}
        print(*(f"{name} {value:g}" for name, value in rows[step].items()), flush=True)
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[step]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[key] for key in sorted(rows))
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(path, text.getvalue())
    return [rows[key] for key in sorted(rows)]


def literal_record(run: Path, rows: list[Row], command: str, commit: str) -> dict[str, Any]:
    """What is known of a run that may have stopped long before its last step."""
    experiment = config.from_json((run / "config.json").read_bytes(), str(run / "config.json"))
    environment, last = files.read_json(run / "environment.json"), rows[-1]
    steps, hours, planned = int(last["step"]), last["minutes"] / 60, experiment.training.steps
    return {
        "preset": experiment.name,
        "seed": experiment.training.seed,
        "command": command,
        "commit": commit or environment.get("commit"),
        "machine": environment.get("machine"),
        "steps": steps,
        "planned_steps": planned,
        "hours": round(hours, 2),
        "steps_per_hour": round(steps / hours),
        "hours_left": round((planned - steps) * hours / steps, 1),
        "scores": {name: last[name] for name in last if name not in ("step", "minutes")},
        "scored": rows,
        "logged": logged_means(read_metrics(run), steps),
    }


def logged_means(metrics: dict[str, list[float]], steps: int) -> list[Row]:
    """Means of the logged terms over every LOGGED_EVERY steps."""
    means = []
    for end in range(LOGGED_EVERY, steps + 1, LOGGED_EVERY):
        row: Row = {"step": end}
        for name in LOGGED:
            pairs = zip(metrics["step"], metrics.get(name, ()), strict=False)
            inside = [v for s, v in pairs if end - LOGGED_EVERY <= s < end and math.isfinite(v)]
            if any(inside):
                row[name] = round(sum(inside) / len(inside), 3)
        means.append(row)
    return means


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path, help="run folder of `scae train`")
    parser.add_argument("name", help="name of the file in results/curves, e.g. mnist-seed0")
    parser.add_argument("--data", type=Path, help="folder of data sets; default: SCAE_DATA")
    parser.add_argument("--literal", metavar="COMMAND", help="the command that started the run")
    parser.add_argument("--commit", default="", help="its commit, if the run does not know it")
    options = parser.parse_args()
    scored = curve(options.run, HERE / "curves" / f"{options.name}.csv", options.data)
    if options.literal:
        target = HERE / "literal" / f"{options.name}.json"
        target.parent.mkdir(exist_ok=True)
        files.write_json(
            target, literal_record(options.run, scored, options.literal, options.commit)
        )
