"""The tutorial's notebook is its page, and runs."""

import importlib.util
import json
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest

DOCS = Path(__file__).parents[1] / "docs"


def code_cells() -> list[str]:
    book = json.loads((DOCS / "tutorial.ipynb").read_text())
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_is_the_page() -> None:
    spec = importlib.util.spec_from_file_location("notebook", DOCS / "notebook.py")
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    page = (DOCS / "tutorial.md").read_text()
    assert maker.notebook(page) == json.loads((DOCS / "tutorial.ipynb").read_text())


def test_the_notebook_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    names: dict = {}
    for cell in code_cells():
        exec(compile(cell, "tutorial.ipynb", "exec"), names)
    printed = capsys.readouterr().out
    assert "600 images of 28x28x1, 10 classes" in printed
    assert float(re.search(r"^accuracy (0\.\d+)$", printed, re.MULTILINE)[1]) > 0.2  # chance: 0.1
    seen, dragged = names["found"].reconstructions.objects, names["dragged"]
    columns = np.arange(28) * np.ones((28, 1))

    def middle(pictures: np.ndarray) -> np.ndarray:
        return (pictures[:, 0] * columns).sum((1, 2)) / pictures[:, 0].sum((1, 2))

    assert (middle(dragged) - middle(seen)).mean() > 0.5, "strokes went to the right"
    assert (tmp_path / "explanations.png").stat().st_size > 5000
    assert (tmp_path / "my-clusters" / "clusters.safetensors").is_file()
