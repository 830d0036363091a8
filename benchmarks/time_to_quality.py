"""Steps and minutes until a training reaches a quality, from its recorded curve, as a table.

python benchmarks/time_to_quality.py results/curves/mnist-seed0.csv results/curves/mnist-seed1.csv
"""

import argparse
import csv
from pathlib import Path

GOALS = {"lin_match": (80, 90, 95), "lin_pred": (90, 95, 97)}
NAMES = {"lin_match": "LIN-MATCH", "lin_pred": "LIN-PRED"}


def first_reached(rows: list[dict[str, str]], score: str, percent: float) -> str:
    """Steps and minutes of the first row whose score, a fraction, is high enough."""
    for row in sorted(rows, key=lambda row: int(row["step"])):
        if 100 * float(row[score]) >= percent:
            return f"{int(row['step']):,} steps, {float(row['minutes']):.0f} min"
    return "not reached"


def table(paths: list[Path]) -> str:
    """One row per curve, one column per goal, in markdown."""
    goals = [(score, percent) for score, values in GOALS.items() for percent in values]
    header = ["curve", *(f"{NAMES[score]} {percent}" for score, percent in goals), "last"]
    lines = [header, ["---"] * len(header)]
    for path in paths:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        reached = [first_reached(rows, *goal) for goal in goals]
        last = " / ".join(f"{100 * float(rows[-1][score]):.1f}" for score in GOALS)
        lines.append([path.stem, *reached, f"{last} at {int(rows[-1]['step']):,}"])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("curves", nargs="+", type=Path, help="results/curves/NAME.csv")
    print(table(parser.parse_args().curves))
