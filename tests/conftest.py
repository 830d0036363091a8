"""Shape and type checks of every annotated function, and where the real data sets are."""

import os
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

# Has to run before the first import of any scae module: beartype is a test-time cost only.
install_import_hook("scae", "beartype.beartype")


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
