"""Score a finished run, keep the result here, and write the pages that quote it.

    python results/record.py runs/mnist-seed0 --command "scae train mnist"          # one JSON
    python results/record.py runs/mnist-seed0 --command "scae train mnist" --ship   # and weights
    python results/record.py                                                        # pages only

The README's table, `scae presets` and the model cards are made from the JSON files.
"""

import argparse
import json
from datetime import date
from pathlib import Path
from typing import Any

from scae.reproduce.results_page import measured, recorded_runs, results_page

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src" / "scae"
README = HERE.parent / "README.md"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
FRONT = ("preset", "metric, %", "paper", "ours", "seeds", "hours")
ALSO_SCORED = {"mnist40": ("affnist-style",)}


def record(folder: Path, command: str, note: str | None) -> dict[str, Any]:
    """Score a run folder and write its JSON."""
    from scae.api import load_model
    from scae.evaluation import evaluate
    from scae.training import read_metrics

    loaded = load_model(str(folder))
    experiment = loaded.experiment
    evaluation = evaluate(loaded.model, experiment).to_dict()
    for dataset in ALSO_SCORED.get(experiment.name, ()):
        evaluation[dataset] = evaluate(loaded.model, experiment, dataset).to_dict()
    metrics = read_metrics(folder)
    seconds = [value for value in metrics.get("seconds", []) if value == value]
    run = {
        "preset": experiment.name,
        "command": command,
        "seed": experiment.training.seed,
        "steps": experiment.training.steps,
        "hours": round(seconds[-1] / 3600, 3) if seconds else None,
        "recorded": date.today().isoformat(),
        "environment": json.loads((folder / "environment.json").read_text()),
        "evaluation": evaluation,
        "note": note,
    }
    path = HERE / f"{experiment.name}-seed{experiment.training.seed}.json"
    path.write_text(json.dumps(run, indent=2) + "\n")
    return run


def ship(folder: Path) -> None:
    """Put the weights of a run into the package, in half precision: half the download."""
    from scae import weights_file

    experiment, state = weights_file.load_weights(folder / "weights.safetensors")
    target = PACKAGE / "weights" / experiment.name / "weights.safetensors"
    target.parent.mkdir(parents=True, exist_ok=True)
    weights_file.write_state({name: x.half() for name, x in state.items()}, experiment, target)


def card(run: dict[str, Any]) -> str:
    """The model card of a shipped run."""
    machine = run["environment"]["machine"]
    rows = [row for row in measured(HERE) if row["preset"] == f"`{run['preset']}`"]
    lines = [
        f"# `{run['preset']}`",
        "",
        f"- **Command**: `{run['command']}`, seed {run['seed']}, {run['steps']:,} steps, "
        f"{run['hours']:.2g} hours",
        f"- **Machine**: {machine['processor']}, {machine['cores']} cores; {run['recorded']}",
        f"- **Commit**: {(run['environment'].get('commit') or 'unknown')[:8]}",
        *(
            f"- **{row['metric, %']}**: {row['ours']} % over all seeds, paper {row['paper']}"
            for row in rows
        ),
    ]
    return "\n".join([*lines, *([f"- **Note**: {run['note']}"] if run["note"] else []), ""])


def write_pages() -> None:
    """Write everything that is made of the JSON files."""
    (HERE / "README.md").write_text(results_page(HERE))
    rows = measured(HERE)
    table = ["| " + " | ".join(row[name] for name in FRONT) + " |" for row in rows]
    table = ["| " + " | ".join(FRONT) + " |", "|" + "---|" * len(FRONT), *table] if rows else []
    before, rest = README.read_text().split(BEGIN)
    text = "\n".join([BEGIN, *table, END]).replace("](", "](results/")
    README.write_text(before + text + rest.split(END)[1])
    sentences: dict[str, str] = {}
    for row in rows:
        sentence = f"{row['metric, %']} {row['ours']} % (paper {row['paper']}), {row['hours']} h"
        sentences.setdefault(row["preset"].strip("`"), sentence)
    (PACKAGE / "presets" / "measured.json").write_text(json.dumps(sentences, indent=2) + "\n")
    for name, runs in recorded_runs(HERE).items():
        weights = PACKAGE / "weights" / name
        if weights.is_dir():
            (weights / "card.md").write_text(card(runs[0]))


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
        record(options.run, options.command, options.note)
        if options.ship:
            ship(options.run)
    write_pages()


if __name__ == "__main__":
    main()
