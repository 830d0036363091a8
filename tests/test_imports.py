"""The rooms depend on each other in one direction, and `import scae` stays light."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import scae

SRC = Path(scae.__file__).parent
# From left to right; a module may import from its own room and from rooms to the left.
ROOMS = [
    {"errors", "files"},
    {"config"},
    {"geometry", "mixtures", "distributed", "kernels", "schedules", "presets"},
    {"data", "weights_file"},
    {"rendering"},
    {"models"},
    {"inference"},
    {"losses"},
    {"diagnostics"},
    {"training"},
    {"evaluation"},
    {"api"},
    {"gallery"},
    {"prediction"},
    {"export"},
    {"estimator", "hub"},
    {"figures"},
    {"paper_values"},
    {"scores"},
    {"report", "reproduce", "explorer"},
    {"cli"},
]
PLACE = {room: place for place, rooms in enumerate(ROOMS) for room in rooms}


def imported_rooms(path: Path) -> set[str]:
    """Rooms that a file imports, anywhere in it."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("scae"):
            if node.module == "scae":
                rooms |= {alias.name for alias in node.names} & PLACE.keys()
            else:
                rooms.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            rooms |= {a.name.split(".")[1] for a in node.names if a.name.startswith("scae.")}
    return rooms


@pytest.mark.parametrize("room", sorted(PLACE))
def test_rooms_import_from_the_left_only(room):
    folder, module = SRC / room, SRC / f"{room}.py"
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [module]
    assert files
    for path in files:
        for other in imported_rooms(path) - {room}:
            assert PLACE[other] < PLACE[room], f"{path.name} imports scae.{other}"


def test_every_module_has_a_room():
    found = {p.stem for p in SRC.glob("*.py")} | {p.parent.name for p in SRC.glob("*/__init__.py")}
    assert found - {"__init__"} <= PLACE.keys()


def test_import_scae_is_light():
    heavy = ["torch", "lightning", "matplotlib", "fastapi", "pandas", "sklearn"]
    code = f"import sys, scae; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def imported_packages() -> set[str]:
    """Distributions whose modules the package imports, anywhere in it."""
    modules: set[str] = set()
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules.add(node.module.partition(".")[0])
    known = packages_distributions()
    others = modules - set(sys.stdlib_module_names) - {"scae"}
    return {known[module][0].lower().replace("_", "-") for module in others}


def test_every_dependency_is_imported_and_every_import_declared():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [line for name in extras if name != "test" for line in extras[name]]
    names = (re.match(r"[\w-]+", line) for line in project["dependencies"] + lines)
    declared = {name[0].lower().replace("_", "-") for name in names if name}
    # Part of pydantic and lightning; Lightning imports tensorboard, users onnxruntime.
    parts, indirect = {"pydantic-core", "tqdm"}, {"tensorboard", "onnxruntime"}
    assert imported_packages() - parts == declared - indirect
