from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from tests import genuine
from tests.store.servers import moto as moto
from tests.store.servers import seaweedfs as seaweedfs

settings.register_profile("underlay", deadline=None)  # machines are noisy: no test asserts on time
settings.load_profile("underlay")


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder with the files that other systems wrote."""
    return genuine.fixtures()
