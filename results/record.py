"""Record a finished run, and ship its weights.

    python results/record.py runs/mnist --command "scae train mnist" --commit 1a2b3c4 [--ship]

The first writes results/NAME-seedN.json: how the run was made, all its scores, and the mean
presences of a sample, by which `tests/test_shipped.py` tells whether weights are those that
were scored. `--ship` puts the weights into the package, in half precision, and scores those.
`--preset NAME` is for runs of a version whose configurations no longer are read: the weights are
saved again with the present preset.
"""

import argparse
import csv
import json
import platform
import shutil
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from scae import config, files
from scae.api import load, wrap
from scae.config import ConstellationExperiment, Experiment
from scae.data import load_images, load_scenes
from scae.evaluation import evaluate
from scae.evaluation.evaluate import SCENES_SEED
from scae.models import CapsuleModel
from scae.prediction import CLUSTERS, keep_clusters
from scae.presets import preset
from scae.weights_file import load_weights, read_tensors, write_state

HERE = Path(__file__).parent
SHIPPED = HERE.parent / "src" / "scae" / "weights"
WEIGHTS = "weights.safetensors"
SAMPLE = 500
OTHER_DATA = {"mnist40": "affnist-style"}
"""Data of another distribution that a preset is scored on as well."""


def record(
    run: Path,
    weights: Path,
    command: str,
    commit: str,
    data_dir: Path | None = None,
    origin: str = "",
    note: str = "",
) -> dict[str, Any]:
    """Score the weights in a folder, made of those of a run, and write the run's JSON."""
    loaded = load(weights)
    experiment = loaded.experiment
    evaluation = evaluate(loaded.model, experiment, data_dir=data_dir)
    evaluation["dataset"] = Path(evaluation["dataset"]).name
    if other := OTHER_DATA.get(experiment.name):
        evaluation[other] = evaluate(loaded.model, experiment, other, data_dir)
    result = {
        "preset": experiment.name,
        "seed": experiment.training.seed,
        "steps": experiment.training.steps,
        "command": command,
        "commit": commit,
        **made_with(run),
        "date": date.today().isoformat(),
        "evaluation": evaluation,
        "sample": {
            "examples": SAMPLE,
            "presence_mean": presence_mean(loaded.model, experiment, data_dir),
        },
    }
    texts = {"config": origin, "note": note}
    result |= {key: text for key, text in texts.items() if text}
    files.write_json(HERE / f"{stem(experiment)}.json", result)
    return result


def stem(experiment: Experiment) -> str:
    """File name of a run's record: its preset and seed; of own images, their folder."""
    if experiment.name == "images":
        return f"images-{Path(experiment.data.name).name}"
    return f"{experiment.name}-seed{experiment.training.seed}"


def record_failure(run: Path, command: str, commit: str, why: str) -> None:
    """Write the JSON of a run that has no scores: failures are results too."""
    experiment = config.from_json((run / "config.json").read_bytes(), str(run / "config.json"))
    made = {"preset": experiment.name, "seed": experiment.training.seed}
    made |= {"command": command, "commit": commit, "failed": why}
    result = made | made_with(run) | {"date": date.today().isoformat()}
    files.write_json(HERE / f"{stem(experiment)}.json", result)


def presence_mean(
    model: CapsuleModel, experiment: Experiment, data_dir: Path | None = None
) -> list[float]:
    """Mean prior presences of the first 500 test images or scenes: a fingerprint of weights."""
    if isinstance(experiment, ConstellationExperiment):
        scenes = load_scenes(experiment.data, SCENES_SEED, SAMPLE)
        both = wrap(model, experiment).presences(scenes.points.numpy(), scenes.presence.numpy())
    else:
        images = load_images(experiment.data, "test", data_dir).images[:SAMPLE]
        both = wrap(model, experiment).presences(images.numpy())
    mean: list[float] = both.prior.mean(0).astype(float).round(6).tolist()
    return mean


def made_with(run: Path) -> dict[str, Any]:
    """Machine, hours and memory of a training, as far as its folder says."""
    path = run / "environment.json"
    known = json.loads(path.read_text()) if path.is_file() else {}
    found = {"machine": known.get("machine") or platform.platform()}
    found |= {key: known[key] for key in ("hours", "peak_memory_mb") if known.get(key)}
    if "hours" not in found and (run / "metrics.csv").is_file():  # of older versions
        with open(run / "metrics.csv", newline="") as file:
            seconds = [float(row["seconds"]) for row in csv.DictReader(file)]
        found["hours"] = round(max(seconds) / 3600, 4)
    return found


def resave(run: Path, name: str) -> tuple[Path, str]:
    """Write a run's weights with the present preset, and the seed and steps of the run.

    Returns the new folder, and a note on where the configuration comes from.
    """
    old = json.loads((run / "config.json").read_text())
    chosen = preset(name)
    own = {key: old["training"][key] for key in ("seed", "steps")}
    experiment = replace(chosen, training=replace(chosen.training, **own))
    new = config.to_json(experiment)
    parts = ("model", "data", "loss", "schedule", "optimizer")
    changed = [part for part in parts if old[part] != new[part]]
    if "model" in changed or "data" in changed:
        sys.exit(f"The preset {name} is not what made {run}: {', '.join(changed)} differ.")
    folder = run / "present-preset"
    folder.mkdir(exist_ok=True)
    write_state(read_tensors(run / WEIGHTS), experiment, folder / WEIGHTS)
    differing = f"; the run differs in {', '.join(changed)}" if changed else ""
    return folder, f"present preset{differing}"


def ship(run: Path, data_dir: Path | None = None) -> Path:
    """Put a run's weights and clusters into the package; half precision is half the download."""
    loaded = load(run)
    experiment, state = load_weights(run / WEIGHTS)
    target = SHIPPED / experiment.name
    target.mkdir(parents=True, exist_ok=True)
    halves = {name: x.half() if x.is_floating_point() else x for name, x in state.items()}
    write_state(halves, experiment, target / WEIGHTS)
    if not isinstance(experiment, ConstellationExperiment):
        if not (run / CLUSTERS).is_file():
            keep_clusters(loaded, data_dir, seed=experiment.training.seed)
        shutil.copy(run / CLUSTERS, target / CLUSTERS)
    return target


def card(result: dict[str, Any]) -> str:
    """The model card of a shipped run."""
    name = result["preset"]
    lines = [
        f"# `{name}`",
        "",
        f"- **Command**: `{result['command']}`, seed {result['seed']}, {result['steps']:,} steps",
        f"- **Commit**: {result['commit']}, {result['date']}",
        f"- **Recorded in**: `results/{name}-seed{result['seed']}.json`",
    ]
    lines += [f"- **{metric}**: {100 * value:.1f} %" for metric, value in scores(result)]
    return "\n".join([*lines, ""])


def scores(result: dict[str, Any]) -> list[tuple[str, float]]:
    """The scores that a card names, as fractions."""
    evaluation = result["evaluation"]
    if "segmentation_error" in evaluation:
        noisy = evaluation["error_at_noise"].items()
        rows = [(f"Segmentation error at point noise {noise}", error) for noise, error in noisy]
        return [("Segmentation error", evaluation["segmentation_error"]), *rows]
    match, pred = evaluation["lin_match"]["prior"], evaluation["lin_pred"]["prior"]
    rows = [(f"LIN-MATCH, {protocol}", value) for protocol, value in match.items()]
    rows += [(f"LIN-PRED, {protocol}", value) for protocol, value in pred.items()]
    if other := OTHER_DATA.get(result["preset"]):
        value = evaluation[other]["lin_match"]["prior"]["train-target"]
        rows.append((f"LIN-MATCH, {other}", value))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="run folder of `scae train`")
    parser.add_argument("--command", required=True, help="the command that made the run")
    parser.add_argument("--commit", required=True, help="the commit that it ran")
    parser.add_argument("--data", type=Path, help="folder of data sets; default: SCAE_DATA")
    parser.add_argument("--ship", action="store_true", help="put its weights into the package")
    parser.add_argument("--failed", metavar="WHY", help="record that the training failed")
    parser.add_argument("--preset", help="take the experiment from this preset, not from the run")
    parser.add_argument("--note", default="", help="what a reader has to know of the run")
    options = parser.parse_args()
    if options.failed:
        return record_failure(options.run, options.command, options.commit, options.failed)
    weights, origin = options.run, ""
    if options.preset:
        weights, origin = resave(options.run, options.preset)
    if options.ship:
        weights = ship(weights, options.data)
    made = options.command, options.commit, options.data, origin, options.note
    result = record(options.run, weights, *made)
    if options.ship:
        files.write_text(weights / "card.md", card(result))
    for metric, value in scores(result):
        print(f"{metric}: {100 * value:.2f} %")


if __name__ == "__main__":
    main()
