"""Python in the documentation runs as printed."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def test_training_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "training.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    code = "\n".join(blocks).replace("steps=200", "steps=2").replace(", 20\n", ", 2\n")
    names: dict = {}
    exec(compile(code, "training.md", "exec"), names)
    assert names["run"].steps == 2
    assert names["loss"].isfinite()


def test_tests_named_by_the_promises_exist() -> None:
    table = (DOCS / "reliability.md").read_text()
    named = re.findall(r"(tests/\w+\.py)(?: -k (\w+))?", table)
    assert len(named) > 10
    for file, word in named:
        assert re.search(rf"def test_\w*{word}", (DOCS.parent / file).read_text()), (file, word)
