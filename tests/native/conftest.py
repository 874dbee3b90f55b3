"""What tests of the native part share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this test run have in common: what one has compiled another need not."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "native"
    folder.mkdir(exist_ok=True)
    return folder
