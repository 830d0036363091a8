"""What stands above every table: budget, hardware, data, and warnings nobody can miss."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from scae.reproduce.budgets import Length
from scae.reproduce.runner import Outcome
from scae.reproduce.tables import SHOWN


@dataclass(frozen=True)
class Summary:
    """Facts and warnings about the runs behind a table."""

    warnings: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


def summarise(length: Length, outcomes: Sequence[Outcome], command: str) -> Summary:
    """Facts and warnings of a table from the outcomes of its cells."""
    results = [o.result for o in outcomes if o.result is not None]
    environments = [result["environment"] for result in results]
    seconds = sum(float(result["training_seconds"]) for result in results)
    counts = {s: sum(o.status == s for o in outcomes) for s in ("finished", "failed", "not run")}
    steps = sorted({int(result["steps"]) for result in results})
    facts = {
        "budget": length.text,
        "runs": ", ".join(f"{n} {status}" for status, n in counts.items() if n) or "none",
        "seeds per cell": str(len({o.cell.seed for o in outcomes})),
        "steps per run": _range(steps),
        "hardware": "; ".join(_unique(map(_hardware, environments))) or "nothing has been run",
        "training time": f"{seconds / 3600:.2f} h over all runs",
        "code": "; ".join(_unique(map(_code, environments))) or "–",
        "data": "; ".join(_unique(text for result in results for text in result["data"])) or "–",
        "written": datetime.now(UTC).date().isoformat(),
        "command": command,
    }
    return Summary(tuple(_warnings(length, outcomes)), tuple(facts.items()))


def _warnings(length: Length, outcomes: Sequence[Outcome]) -> list[str]:
    found = []
    if length.budget == "smoke":
        found.append(
            "SMOKE RUN, NOT A RESULT: models were hardly trained and scored on a handful of "
            "examples, only to show that every cell of the table can be made."
        )
    elif length.steps is not None:
        found.append(
            f"Short trainings: {length.steps} steps per run, where the paper has 300 000; "
            "differences to the paper say more about the budget than about the model."
        )
    stand_ins = _unique(
        f"{SHOWN[o.cell.dataset]} (ours: embedded {o.cell.stand_in})"
        for o in outcomes
        if o.cell.stand_in is not None
    )
    if stand_ins:
        found.append(f"Real data are missing and were replaced: {', '.join(stand_ins)}.")
    if any(o.cell.evaluation.transfer == "affnist-style" for o in outcomes):
        found.append(
            "affNIST is not at hand: the column affNIST-style is scored on MNIST test digits "
            "under random affine maps of the same ranges, which are not affNIST."
        )
    failed = [o for o in outcomes if o.status == "failed"]
    found += [f"Failed: {o.cell.name} ({o.reason})" for o in failed]
    other = [o.cell.name for o in outcomes if o.other_code]
    if other:
        found.append(
            f"Trained by an earlier version of the code: {len(other)} of {len(outcomes)} runs."
        )
    return found


def _hardware(environment: dict[str, Any]) -> str:
    machine = environment["machine"]
    gpus = ", ".join(machine["gpus"])
    return f"{machine['processor']}, {machine['cores']} cores" + (f", {gpus}" if gpus else "")


def _code(environment: dict[str, Any]) -> str:
    versions, commit = environment["versions"], environment["commit"]
    at = f" ({commit[:10]}{'+' if commit.endswith('+') else ''})" if commit else ""
    return f"scae {versions['scae']}{at}, torch {versions['torch']}"


def _range(steps: list[int]) -> str:
    if not steps:
        return "–"
    return str(steps[0]) if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
