from __future__ import annotations

from pathlib import Path

import pytest

from tests import genuine


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder with the files that other systems wrote."""
    return genuine.fixtures()
