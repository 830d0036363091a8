"""The documentation's Python runs as printed, and its map names what exists."""

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import scae

DOCS = Path(__file__).parents[1] / "docs"
SOURCE = Path(scae.__file__).parent


def test_training_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`scae.train` from Python, the loop without Lightning, and another part encoder."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "training.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    code = "\n".join(blocks).replace("steps=200", "steps=2").replace(", 20\n", ", 2\n")
    names: dict = {}
    exec(compile(code, "training.md", "exec"), names)
    assert names["run"].steps == 2
    assert names["loss"].isfinite()
    assert type(names["model"].part_encoder).__name__ == "FlatEncoder"


def test_the_map_of_the_model_names_what_exists() -> None:
    text = (DOCS / "model.md").read_text()
    text = text[: text.index("## Where paper and release differ")]
    for path in re.findall(r"`([a-z_/]+(?:\.py|/))`", text):
        assert (SOURCE / path).exists(), path
    modules = {module.name for module in pkgutil.iter_modules([str(SOURCE)])}
    names = [name.split(".") for name in re.findall(r"`(\w+(?:\.\w+)*)`", text)]
    named = [name for name in names if name[0] in modules and name[-1] != "py"]
    assert len(named) > 25
    for name in named:
        depth = next(
            d
            for d in range(len(name), 0, -1)
            if SOURCE.joinpath(*name[:d]).is_dir()
            or SOURCE.joinpath(*name[:d]).with_suffix(".py").is_file()
        )
        owner = import_module(".".join(["scae", *name[:depth]]))
        for attribute in name[depth:]:
            fields = getattr(owner, "__dataclass_fields__", {})
            assert hasattr(owner, attribute) or attribute in fields, ".".join(name)
            owner = getattr(owner, attribute, None)


def test_tests_named_by_the_promises_exist() -> None:
    named = re.findall(r"(tests/test_\w+\.py)(?: -k (\w+))?", (DOCS / "reliability.md").read_text())
    assert len(named) > 10
    for file, word in named:  # a word of a test's name or of what it is parametrised by
        assert word in (DOCS.parent / file).read_text(), (file, word)
