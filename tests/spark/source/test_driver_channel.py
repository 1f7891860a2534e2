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
heard: list[tuple[str, str]] = []


@pytest.fixture
def listener() -> Iterator[DriverListener]:
    heard.clear()
    found = DriverListener(lambda lake, table: heard.append((lake, table)), lambda place, version: REASONS.get(version))
    yield found
    found.close()


def test_commit_of_another_process_is_heard_before_it_goes_on(listener: DriverListener):
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).tell_committed('file:///lake', 'a.b'))"
    given = pickle.dumps(listener.line)
    done = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, check=True, timeout=600)
    assert done.stdout == b"True\n"
    assert heard == [("file:///lake", "a.b")]


def test_message_with_another_key_is_not_heard(listener: DriverListener, caplog: pytest.LogCaptureFixture):
    assert not replace(listener.line, key=b"other").tell_committed("file:///lake", "a.b")
    assert heard == []
    assert "the driver was not told of a commit to a.b" in caplog.text
    assert listener.line.tell_committed("file:///lake", "c.d")


def test_commit_that_the_driver_cannot_hear_is_logged(listener: DriverListener, caplog: pytest.LogCaptureFixture):
    listener.close()
    assert not listener.line.tell_committed("file:///lake", "a.b")
    assert "the driver was not told of a commit to a.b" in caplog.text


def test_question_is_answered_by_the_driver_if_it_can_be_reached(
    listener: DriverListener, caplog: pytest.LogCaptureFixture
):
    assert listener.line.why_not_replace("file:///lake/a/b/c", 3) == "version 2 was read"
    assert listener.line.why_not_replace("file:///lake/a/b/c", 2) is None
    listener.close()
    assert listener.line.why_not_replace("file:///lake/a/b/c", 3) is None
    assert "the driver was not told that version 3 of file:///lake/a/b/c is replaced" in caplog.text


def test_key_is_not_shown(listener: DriverListener):
    assert "key" not in repr(listener.line)
