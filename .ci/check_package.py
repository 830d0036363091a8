"""Build wheel and sdist, look inside, install the wheel in an empty venv and use it."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_MB = 60
WHEEL = (
    "scae/__init__.py",
    "scae/py.typed",
    "scae/cli/__init__.py",
    "scae/explorer/page/index.html",
    "scae/explorer/page/main.js",
    "scae/explorer/page/style.css",
    "scae/weights/constellation/weights.safetensors",
    "scae/weights/constellation/card.md",
    "scae/presets/measured.json",
    "scae/report/report.html.jinja",
)
SDIST = (
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "docs/reliability.md",
    "tests/conftest.py",
    "tests/test_golden_models.py",
    "tests/golden/scae_model_sobel.npz",
    *(f"src/{name}" for name in WHEEL),
)
# Data sets, runs and caches have no place in a package.
UNWANTED = ("ubyte", ".mat", "data_batch", "__pycache__", ".pyc", "/runs/", "events.out", ".ci")

USE = """
import scae, torch
from pathlib import Path
assert Path(scae.__file__).is_relative_to({venv!r}), scae.__file__
model = scae.load("constellation")
square = torch.tensor([[-0.5, -0.5], [-0.5, 0.5], [0.5, -0.5], [0.5, 0.5]])
found = model.segment(square[None].numpy())
print("segments", found)
"""


def run(*command: str, cwd: Path) -> str:
    """The command's output; its failure is ours."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def check(names: set[str], wanted: tuple[str, ...], file: Path) -> None:
    """Everything wanted is there, and nothing else that should not be."""
    missing = [name for name in wanted if name not in names]
    extra = [name for name in names if any(word in name for word in UNWANTED)]
    size = file.stat().st_size / 1e6
    if missing or extra or size > MAX_MB:
        raise SystemExit(f"{file.name}: missing {missing}, unwanted {extra[:5]}, {size:.1f} MB")
    print(f"{file.name}: {len(names)} files, {size:.1f} MB")


def main() -> None:
    """Build, look, install, use."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        # Without isolation: the pinned hatchling, and nothing fetched.
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", name, str(ROOT), cwd=place)
        wheel, sdist = next(place.glob("*.whl")), next(place.glob("*.tar.gz"))
        with zipfile.ZipFile(wheel) as archive:
            check(set(archive.namelist()), WHEEL, wheel)
        with tarfile.open(sdist) as tar:
            check({member.partition("/")[2] for member in tar.getnames()}, SDIST, sdist)
        home = place / "venv"
        venv.create(home, with_pip=False)
        python = str(home / "bin" / "python")
        pip = (sys.executable, "-m", "pip", "-q", "--python", python)
        run(*pip, "install", "--no-deps", "--no-index", str(wheel), cwd=place)
        # The dependencies are those already installed: another copy of torch would prove nothing.
        own = Path(
            run(
                python, "-c", "import sysconfig as s; print(s.get_path('purelib'))", cwd=place
            ).strip()
        )
        (own / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        assert "constellation" in run(str(home / "bin" / "scae"), "presets", cwd=place)
        print(run(python, "-c", USE.format(venv=str(home)), cwd=place).strip())


if __name__ == "__main__":
    main()
