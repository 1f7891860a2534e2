from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from underlay.spark.source.driver_channel import DriverListener

pytestmark = pytest.mark.local_only

REASONS = {3: "version 2 was read"}


@pytest.fixture
def listener() -> Iterator[DriverListener]:
    found = DriverListener(lambda place, version: REASONS.get(version))
    yield found
    found.close()


def test_question_of_another_process_is_answered(listener: DriverListener):
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).why_not_replace('file:///lake/a/b/c', 3))"
    given = pickle.dumps(listener.line)
    done = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, check=True, timeout=600)
    assert done.stdout == b"version 2 was read\n"
    assert listener.line.why_not_replace("file:///lake/a/b/c", 2) is None


def test_question_with_another_key_is_not_answered(listener: DriverListener, caplog: pytest.LogCaptureFixture):
    assert replace(listener.line, key=b"other").why_not_replace("file:///lake/a/b/c", 3) is None
    assert "the driver was not asked whether version 3 of file:///lake/a/b/c may be replaced" in caplog.text
    assert listener.line.why_not_replace("file:///lake/a/b/c", 3) == "version 2 was read"


def test_driver_that_is_gone_is_logged(listener: DriverListener, caplog: pytest.LogCaptureFixture):
    listener.close()
    assert listener.line.why_not_replace("file:///lake/a/b/c", 3) is None
    assert "the driver was not asked whether version 3" in caplog.text


def test_key_is_not_shown(listener: DriverListener):
    assert "key" not in repr(listener.line)
