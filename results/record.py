"""Record a finished run, and ship its weights.

    python results/record.py runs/mnist --command "scae train mnist" --commit 1a2b3c4
    python results/record.py runs/mnist --command "scae train mnist" --commit 1a2b3c4 --ship

The first writes results/NAME-seedN.json: how the run was made, all its scores, and the mean
presences of a sample, by which `tests/test_shipped.py` tells whether weights are those that
were scored. `--ship` puts the weights into the package, in half precision, and scores those.
"""

import argparse
import platform
import shutil
from datetime import date
from pathlib import Path
from typing import Any

from scae import files
from scae.api import load_model
from scae.config import ConstellationExperiment
from scae.evaluation import evaluate, presence_mean
from scae.evaluation.evaluate import SAMPLE
from scae.prediction import CLUSTERS, keep_clusters
from scae.weights_file import load_weights, write_state

HERE = Path(__file__).parent
SHIPPED = HERE.parent / "src" / "scae" / "weights"
OTHER_DATA = {"mnist40": "affnist-style"}
"""Data of another distribution that a preset is scored on as well."""


def record(
    run: Path, command: str, commit: str, data_dir: Path | None = None, weights: Path | None = None
) -> dict[str, Any]:
    """Score a run's weights, or those of another folder made of them, and write its JSON."""
    loaded = load_model(weights or run)
    experiment = loaded.experiment
    evaluation = evaluate(loaded.model, experiment, data_dir=data_dir).to_dict()
    if other := OTHER_DATA.get(experiment.name):
        evaluation[other] = evaluate(loaded.model, experiment, other, data_dir).to_dict()
    result = {
        "preset": experiment.name,
        "seed": experiment.training.seed,
        "steps": experiment.training.steps,
        "command": command,
        "commit": commit,
        "machine": machine(run),
        "date": date.today().isoformat(),
        "evaluation": evaluation,
        "sample": {
            "examples": SAMPLE,
            "presence_mean": presence_mean(loaded.model, experiment, data_dir),
        },
    }
    files.write_json(HERE / f"{experiment.name}-seed{experiment.training.seed}.json", result)
    return result


def machine(run: Path) -> Any:
    """What the run says about the machine that made it."""
    path = run / "environment.json"
    found = json.loads(path.read_text()).get("machine") if path.is_file() else None
    return found or platform.platform()


def ship(run: Path, data_dir: Path | None = None) -> Path:
    """Put a run's weights and clusters into the package; half precision is half the download."""
    loaded = load_model(run)
    experiment, state = load_weights(run / "weights.safetensors")
    target = SHIPPED / experiment.name
    target.mkdir(parents=True, exist_ok=True)
    halves = {name: x.half() if x.is_floating_point() else x for name, x in state.items()}
    write_state(halves, experiment, target / "weights.safetensors")
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
    options = parser.parse_args()
    shipped = ship(options.run, options.data) if options.ship else None
    result = record(options.run, options.command, options.commit, options.data, shipped)
    if shipped:
        files.write_text(shipped / "card.md", card(result))
    for metric, value in scores(result):
        print(f"{metric}: {100 * value:.2f} %")


if __name__ == "__main__":
    main()
