"""Shape and type checks of every annotated function, and where the real data sets are."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

# numba compiles the plain function: a type-checking wrapper inside it cannot be compiled.
NOT_CHECKED = {"scae.rendering.passes"}


def _checked_modules() -> list[str]:
    """Every module by its full name; a package's name would stand for all that is in it."""
    spec = find_spec("scae")
    assert spec is not None and spec.origin is not None, "install the package first"
    folder = Path(spec.origin).parent
    found = [path.relative_to(folder.parent) for path in folder.rglob("*.py")]
    packages = {".".join(path.parent.parts) for path in found if path.stem == "__init__"}
    modules = {".".join(path.with_suffix("").parts) for path in found if path.stem != "__init__"}
    whole = {p for p in packages if not any(name.startswith(f"{p}.") for name in NOT_CHECKED)}
    return sorted((modules | whole) - NOT_CHECKED)


# Has to run before the first import of any scae module: beartype is a test-time cost only.
install_import_hook(_checked_modules(), "beartype.beartype")


def pytest_configure(config: pytest.Config) -> None:
    threads = os.environ.get("OMP_NUM_THREADS")
    if threads:
        import torch

        torch.set_num_threads(int(threads))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real data sets: SCAE_DATA, or a skip that says so."""
    folder = os.environ.get("SCAE_DATA")
    if not folder:
        pytest.skip("SCAE_DATA is not set: tests on the real data sets need it")
    path = Path(folder)
    if not path.is_dir():
        reason = f"SCAE_DATA={folder} is not a folder"
        # On the build machine a lost data folder is a fault, not a reason to skip.
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return path
