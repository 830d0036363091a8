"""Shape and type checks of every annotated function, where the real data sets are, and the
record of what reliability tests measured.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jaxtyping import install_import_hook

# Has to run before the first import of any scae module: beartype is a test-time cost only.
install_import_hook("scae", "beartype.beartype")

SETTINGS = ("OMP_NUM_THREADS", "SCAE_SOAK_MINUTES", "SCAE_SOAK_RATE", "SCAE_FUZZ")
SETTINGS += ("SCAE_FUZZ_HTTP", "SCAE_NUMERICS")
"""Environment variables that belong to the command of a measurement."""


def pytest_configure(config: pytest.Config) -> None:
    # Tests run on one process per core, so each of them, and what it starts, has one thread.
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
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


@pytest.fixture
def reliability(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> Callable[..., None]:
    """Print figures, and write them as `NAME.json` into the folder SCAE_RELIABILITY_OUT."""

    def record(name: str, **figures: Any) -> None:
        with capsys.disabled():
            print(f"\n{name}: {json.dumps(figures)}")
        folder = os.environ.get("SCAE_RELIABILITY_OUT")
        if not folder:
            return
        from scae import files
        from scae.training.environment import describe

        settings = {k: v for k, v in os.environ.items() if k in SETTINGS}
        given = "".join(f"{k}={v} " for k, v in sorted(settings.items()))
        command = f"{given}pytest -m slow '{request.node.nodeid}'"
        Path(folder).mkdir(parents=True, exist_ok=True)
        whole = {"command": command, "figures": figures, "provenance": describe()}
        files.write_json(Path(folder) / f"{name}.json", whole)

    return record
