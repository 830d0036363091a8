"""A stand-in for the processes that train cells: scores without a model, or a failure."""

import json
from pathlib import Path
from typing import Any

ENVIRONMENT = {
    "machine": {"processor": "Test CPU", "cores": 2, "gpus": []},
    "versions": {"scae": "0", "torch": "0"},
    "commit": None,
}


class FakeCells:
    """Writes a result for every cell but those whose folder's name contains a word of `bad`."""

    def __init__(self, bad: tuple[str, ...] = (), interrupt_after: int | None = None) -> None:
        self.bad, self.interrupt_after = bad, interrupt_after
        self.ran: list[str] = []

    def __call__(self, folder: Path) -> int:
        if self.interrupt_after is not None and len(self.ran) >= self.interrupt_after:
            raise KeyboardInterrupt
        self.ran.append(folder.name)
        if any(word in folder.name for word in self.bad):
            (folder / "log.txt").write_text("much text\nout of memory\n")
            return 1
        spec = json.loads((folder / "cell.json").read_text())
        (folder / "result.json").write_text(json.dumps(fake_result(spec)))
        return 0


def fake_result(spec: dict[str, Any]) -> dict[str, Any]:
    """LIN-MATCH 0.90, 0.92, 0.94, ... for seeds 0, 1, 2, ...; 0.1 lower after transfer."""
    seed = spec["experiment"]["training"]["seed"]
    score = 0.9 + 0.02 * seed

    def scores(value: float, *protocols: str) -> dict[str, dict[str, float]]:
        return {
            "prior": dict.fromkeys(protocols, value),
            "posterior": dict.fromkeys(protocols, value - 0.3),
        }

    if spec["experiment"]["kind"] == "constellations":
        own: dict[str, Any] = {"segmentation_error": 0.04}
    else:
        own = {
            "lin_match": scores(score, "full", "train-test"),
            "lin_pred": scores(score + 0.01, "train-test"),
            "baselines": {"k-means on pixels": {"full": 0.53}}
            if spec["evaluation"]["baselines"]
            else {},
        }
    result = {
        "key": spec["key"],
        "steps": spec["experiment"]["training"]["steps"],
        "training_seconds": 1.0,
        "environment": ENVIRONMENT,
        "data": ["data: 10 images"],
        "own": own,
    }
    if spec["evaluation"]["transfer"]:
        result["transfer"] = {"lin_match": scores(score - 0.1, "train-target")}
    return result
