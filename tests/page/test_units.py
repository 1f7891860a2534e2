"""The unit tests of the page, which Node runs; and that the values they read are those that the service sends."""

from __future__ import annotations

import base64
import json
import subprocess
from io import BytesIO

import pyarrow as pa
from hatch_build import WEB, find_node

from tests.page.conftest import missing
from tests.server.conftest import Served

_TYPES = WEB / "test" / "types.json"


def test_the_unit_tests_of_the_page_pass(built: None):
    node = find_node()
    if node is None:
        missing("the page's unit tests need Node")
    else:
        program = [str(node[0]), str(WEB / "node_modules" / "vitest" / "vitest.mjs"), "run", "--no-color"]
        done = subprocess.run(program, cwd=WEB, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
        assert "passed" in done.stdout


def test_the_values_that_the_unit_tests_read_are_those_that_the_service_sends(site: Served):
    stored = json.loads(_TYPES.read_text())
    sql = "select " + ", ".join(f'{value} as "{name}"' for name, value in stored["columns"])
    with site.client(None) as client:
        answer = client.post("/v1/sql", json={"sql": sql}, headers={"accept": "application/vnd.apache.arrow.stream"})
    sent = pa.ipc.open_stream(BytesIO(answer.content)).read_all()
    known = pa.ipc.open_stream(base64.b64decode(stored["arrow"])).read_all()
    assert sent.schema == known.schema, "write what the service sends now into types.json, as base64"
    assert all(
        sent.column(at).equals(known.column(at)) or str(sent.column(at)) == str(known.column(at))
        for at in range(len(sent.schema))
    )
