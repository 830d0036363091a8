"""Shape and type checks of every annotated function, and where the real data sets are."""

import os
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

# Has to run before the first import of any scae module: beartype is a test-time cost only.
install_import_hook("scae", "beartype.beartype")


def pytest_configure(config: pytest.Config) -> None:
    # Tests run on one process per core, so each of them, and what it starts, has one thread.
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    threads = os.environ.get("OMP_NUM_THREADS")
    if threads:
        import torch

        torch.set_num_threads(int(threads))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI nothing may be skipped: a missing browser or data set is a failure there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") == "true" and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real data sets: SCAE_DATA, or a skip that says so."""
    folder = os.environ.get("SCAE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SCAE_DATA names no folder: tests on the real data sets need it")
    return Path(folder)
