"""Score a finished run, keep the result here, and make the tables that quote it.

    python results/record.py runs/mnist --command "scae train mnist"          # one JSON
    python results/record.py runs/mnist --command "scae train mnist" --ship   # and the weights
    python results/record.py                                                  # tables only

Every number of README.md in this folder, of `scae presets` and of the model cards is made from
the JSON files; `tests/test_results.py` fails when they differ.
"""

import argparse
import csv
import json
import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from scae.paper_values import (
    CONSTELLATIONS,
    TABLE1_LIN_MATCH,
    TABLE1_LIN_PRED,
    TABLE2,
)

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src" / "scae"
MEASURED = PACKAGE / "experiments" / "measured.json"

# What each preset is scored by: the metric, where it is in the evaluation, the paper's value.
MATCH, PREDICT = ("lin_match", "prior", "train-test"), ("lin_pred", "prior", "train-test")
ERROR = ("segmentation_error",)
ROWS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("constellation", "segmentation error", ERROR, CONSTELLATIONS["full"].text),
    ("constellation-baseline", "segmentation error", ERROR, CONSTELLATIONS["baseline"].text),
    ("mnist", "LIN-MATCH", MATCH, TABLE2["full"]["mnist"].text),
    (
        "mnist",
        "LIN-MATCH, full data",
        ("lin_match", "prior", "full"),
        TABLE1_LIN_MATCH["mnist"].text,
    ),
    ("mnist", "LIN-PRED", PREDICT, TABLE1_LIN_PRED["mnist"].text),
    ("mnist40", "LIN-MATCH", MATCH, TABLE2["full"]["mnist40"].text),
    ("svhn", "LIN-MATCH", MATCH, TABLE1_LIN_MATCH["svhn"].text),
    ("svhn", "LIN-PRED", PREDICT, TABLE1_LIN_PRED["svhn"].text),
    ("cifar10", "LIN-MATCH", MATCH, TABLE1_LIN_MATCH["cifar10"].text),
    ("cifar10", "LIN-PRED", PREDICT, TABLE1_LIN_PRED["cifar10"].text),
    ("digits", "LIN-MATCH", MATCH, "not in the paper"),
    ("digits", "LIN-PRED", PREDICT, "not in the paper"),
)

ABOUT = {
    "constellation": "A Constellation Capsule Autoencoder (section 2.1): three object capsules "
    "with four votes each segment up to 11 points into squares and triangles.",
    "constellation-baseline": "The baseline of section 3.1: the same encoder, points predicted "
    "without any geometry.",
    "mnist": "A Stacked Capsule Autoencoder of 28x28 digits: 24 parts, 24 objects.",
    "mnist40": "A Stacked Capsule Autoencoder of digits shifted on a 40x40 canvas.",
    "svhn": "A Stacked Capsule Autoencoder of house numbers, trained on Sobel targets.",
    "cifar10": "A Stacked Capsule Autoencoder of CIFAR-10, trained on Sobel targets.",
    "digits": "A Stacked Capsule Autoencoder of scikit-learn's 8x8 digits, enlarged.",
}
LIMITS = {
    "constellation": "Points have to be normalised to [-1, 1]^2 per scene. Other patterns, more "
    "than three objects and noisy points were not trained.",
    "svhn": "Trained on 20 000 images. Non-commercial use only, as the data set.",
    "cifar10": "Trained on 10 000 images.",
}


def results() -> dict[str, list[dict[str, Any]]]:
    """All recorded runs by preset, in the order of their seeds."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(HERE.glob("*-seed*.json")):
        run = json.loads(path.read_text())
        found.setdefault(run["preset"], []).append(run | {"file": path.name})
    return found


def value(run: dict[str, Any], keys: tuple[str, ...]) -> float:
    """A score in per cent."""
    found = run["evaluation"]
    for key in keys:
        found = found[key]
    return 100 * float(found)


def spread(values: list[float]) -> str:
    """Mean and, of more than one, standard deviation."""
    deviation = f" ({stdev(values):.1f})" if len(values) > 1 else ""
    return f"{mean(values):.1f}{deviation}"


def table_lines() -> Iterator[str]:
    """The table of all recorded runs with the paper beside them."""
    runs = results()
    yield "| preset | metric, % | paper | ours | seeds | steps | hours per seed | runs |"
    yield "|---|---|---|---|---|---|---|---|"
    for preset, metric, keys, paper in ROWS:
        if preset in runs:
            mine = runs[preset]
            files = " ".join(f"[{run['seed']}]({run['file']})" for run in mine)
            ours = spread([value(run, keys) for run in mine])
            hours = mean(run["hours"] for run in mine)
            yield (
                f"| `{preset}` | {metric} | {paper} | {ours} | {len(mine)} | "
                f"{mine[0]['steps']:,} | {hours:.2g} | {files} |"
            )


def page() -> str:
    """README.md of this folder."""
    return "\n".join(
        [
            "# Results",
            "",
            "One JSON per run, with the command, seed, commit and machine; made and tabulated by",
            "`python results/record.py`. LIN-MATCH and LIN-PRED are on prior presences and the",
            "test split, clusters fitted on the training split, unless said otherwise;",
            "segmentation error is of present points. Mean (standard deviation) over seeds.",
            "",
            *table_lines(),
            "",
        ]
    )


def measured() -> dict[str, dict[str, Any]]:
    """The row of each preset that `scae presets` shows: its first metric."""
    runs, rows = results(), {}
    for preset, metric, keys, paper in ROWS:
        if preset in runs and preset not in rows:
            mine = runs[preset]
            rows[preset] = {
                "metric": metric,
                "paper": paper,
                "ours": spread([value(run, keys) for run in mine]) + " %",
                "seeds": len(mine),
                "steps": mine[0]["steps"],
                "hours": round(mean(run["hours"] for run in mine), 3),
            }
    return rows


def card(run: dict[str, Any]) -> str:
    """The model card of a shipped run."""
    preset = run["preset"]
    scores = "; ".join(
        f"{metric} {value(run, keys):.1f} % (paper {paper})"
        for name, metric, keys, paper in ROWS
        if name == preset
    )
    seeds = [r["seed"] for r in results()[preset]]
    machine = run["environment"]["machine"]
    limits = " ".join(filter(None, [run.get("note"), LIMITS.get(preset)]))
    return "\n".join(
        [
            f"# `{preset}`",
            "",
            ABOUT[preset],
            "",
            f"- **Command**: `{run['command']}`, seed {run['seed']}, {run['steps']:,} steps, "
            f"{run['hours']:.2g} hours",
            f"- **Machine**: {machine['cores']}-core {machine['processor']}, "
            f"{machine['torch_threads']} thread(s), {run['recorded']}",
            f"- **Result** (`results/{run['preset']}-seed{run['seed']}.json`): {scores}",
            f"- **Seeds run with this recipe**: {', '.join(map(str, seeds))}",
            f"- **Limits**: {limits or 'none known beyond the numbers above.'}",
            "",
        ]
    )


def record(folder: Path, command: str, note: str | None) -> dict[str, Any]:
    """Score a run folder and write its JSON."""
    from scae.api import load_source
    from scae.scoring import score

    loaded = load_source(str(folder))
    experiment = loaded.experiment
    with open(folder / "metrics.csv", newline="") as file:
        last = list(csv.DictReader(file))[-1]
    result = score(loaded.model, experiment).to_dict()
    run = {
        "preset": experiment.name,
        "command": command,
        "seed": experiment.training.seed,
        "steps": int(last["step"]),
        "hours": round(float(last["seconds"]) / 3600, 3),
        "recorded": date.today().isoformat(),
        "environment": json.loads((folder / "environment.json").read_text()),
        "evaluation": result,
        "note": note,
    }
    path = HERE / f"{experiment.name}-seed{experiment.training.seed}.json"
    path.write_text(json.dumps(run, indent=2) + "\n")
    return run


def ship(folder: Path, preset: str) -> None:
    """Put the weights of a recorded run into the package."""
    target = PACKAGE / "weights" / preset
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / "weights.safetensors", target / "weights.safetensors")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", nargs="?", type=Path, help="run folder of `scae train`")
    parser.add_argument("--command", help="the command that made the run")
    parser.add_argument("--note", help="what a reader has to know about this run")
    parser.add_argument("--ship", action="store_true", help="put its weights into the package")
    options = parser.parse_args()
    if options.run:
        if not options.command:
            parser.error("--command: give the command that made the run")
        run = record(options.run, options.command, options.note)
        if options.ship:
            ship(options.run, run["preset"])
            (PACKAGE / "weights" / run["preset"] / "card.md").write_text(card(run))
    (HERE / "README.md").write_text(page())
    MEASURED.write_text(json.dumps(measured(), indent=2) + "\n")
    print(page())


if __name__ == "__main__":
    main()
