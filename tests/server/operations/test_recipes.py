"""The recipes for running a server name what exists: options, metrics, endpoints."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.command import underlay
from tests.server.conftest import Served, run
from underlay.server.common.metrics import COUNTERS, GAUGES, HISTOGRAMS

DOCS = Path(__file__).parents[3] / "docs"
DEPLOY = DOCS / "deploy"


@pytest.fixture(scope="module")
def options() -> set[str]:
    return set(re.findall(r"--[a-z-]+", underlay("serve", "--help").text))


def options_in(command: list[str]) -> list[str]:
    return [word for word in command if word.startswith("--")]


def test_the_dashboard_asks_for_metrics_that_the_server_has(served: Served):
    board = json.loads((DEPLOY / "grafana.json").read_text())
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"underlay_\w+", target["expr"])
    }
    with served.client() as client:
        run(client, "select count(*) from shop.orders")
        shown = client.get("/metrics").text
    known = set(re.findall(r"^(?:# TYPE )?(underlay_\w+)", shown, re.MULTILINE))
    assert len(asked) > 12
    assert asked <= known
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(numbers) == len(set(numbers))


def test_every_metric_has_its_kind_and_help_and_stands_in_the_table(served: Served):
    with served.client() as client:
        run(client, "select 1")
        shown = client.get("/metrics").text
    page = (DOCS / "deploying.md").read_text()
    for kind, known in (("counter", COUNTERS), ("histogram", HISTOGRAMS), ("gauge", GAUGES)):
        for name, told in known.items():
            assert f"# HELP underlay_{name} {told}\n# TYPE underlay_{name} {kind}\n" in shown
            assert f"| `underlay_{name}` | {told} |\n" in page
    assert page.count("| `underlay_") == len({**COUNTERS, **HISTOGRAMS, **GAUGES})
    lines = [line for line in shown.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r'underlay_\w+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+', line) for line in lines)
    counts = [int(line.split()[1]) for line in lines if line.startswith("underlay_run_seconds_bucket")]
    assert counts == sorted(counts)
    assert f"underlay_run_seconds_count {counts[-1]}" in lines


def test_the_unit_starts_the_server_with_options_that_it_has(options: set[str]):
    text = (DEPLOY / "underlay.service").read_text().replace("\\\n", "")
    sections = re.findall(r"^\[(\w+)\]$", text, re.MULTILINE)
    assert sections == ["Unit", "Service", "Install"]
    (command,) = re.findall(r"^ExecStart=(.+)$", text, re.MULTILINE)
    program, verb, *words = shlex.split(command)
    assert (program, verb) == ("/opt/underlay/bin/underlay", "serve")
    assert set(options_in(words)) <= options
    assert all(re.fullmatch(r"\[\w+\]|#.*|[A-Z]\w+=.*|", line) for line in text.splitlines())


def test_the_container_starts_the_server_without_rights_and_asks_whether_it_is_ready(options: set[str], served: Served):
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", "")
    told = [line.split(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    names = [name for name, _ in told]
    assert names[0] == "FROM"
    assert names.index("USER") < names.index("ENTRYPOINT")
    entry, usual = (json.loads(dict(told)[name]) for name in ("ENTRYPOINT", "CMD"))
    assert entry[:2] == ["underlay", "serve"]
    assert set(options_in(entry + usual)) <= options
    (path,) = re.findall(r"http://127\.0\.0\.1:8080(/\w+)", dict(told)["HEALTHCHECK"])
    with served.client(None) as client:
        assert client.get(path).status_code == 200
