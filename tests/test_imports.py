"""The rooms depend on each other in one direction, and `import scae` stays light."""

import ast
import subprocess
import sys
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
