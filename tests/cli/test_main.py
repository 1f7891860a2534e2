"""Help, version, exit codes, streams: what holds for every command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import SCRIPT, installed, underlay
from tests.cli.conftest import Pair
from tests.cli.help_file import rendered
from underlay import __version__
from underlay.cli import main
from underlay.cli.main import HELP
from underlay.cli.pm import inspect as pm_inspect

SIDECAR_COMMANDS = ["build", "show", "dump", "versions", "verify", "read", "prune"]
VERBS = [
    *["init", "create", "ingest", "append", "register", "tables", "show", "scan", "sql", "plan"],
    *["history", "tag", "rollback", "revisions", "rename", "drop", "jobs", "leases"],
]
REGISTRY_COMMANDS = ["status", "follow", "restore", "migrate"]
COMMANDS = [
    *VERBS,
    *(f"registry {command}" for command in REGISTRY_COMMANDS),
    *(f"pm {command}" for command in SIDECAR_COMMANDS),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself_with_two_examples(command: str):
    run = underlay(*command.split(), "-h")
    assert run.code == 0
    assert run.words == ""
    assert len(re.findall(rf"^    underlay .*{command}\b", run.text, re.MULTILINE)) == 2
    assert "<bool>" not in run.text


@pytest.mark.parametrize("command", COMMANDS)
def test_each_option_states_its_default(command: str):
    text = underlay(*command.split(), "--help").text
    options = re.split(r"\n  (?=-)", text[text.index("Options:") :])[1:]
    for option in options:
        assert re.search(r"default: |Default: |\[required\]|Show this message", " ".join(option.split())), option


@pytest.mark.parametrize(
    ("group", "commands"), [([], VERBS), (["registry"], REGISTRY_COMMANDS), (["pm"], SIDECAR_COMMANDS)]
)
def test_help_lists_the_commands_unshortened(group: list[str], commands: list[str]):
    text = underlay(*group, "--help").text
    assert all(f"\n  {command} " in text for command in commands)
    assert "..." not in text[text.index("Commands:") :]


def test_the_stored_help_is_what_typer_renders():
    assert Path(HELP).read_text() == rendered(), "run python -m tests.cli.help_file"


@pytest.mark.parametrize("command", ["", "sql", "pm", "pm read"])
def test_stored_help_is_printed_as_the_command_itself_would_print_it(command: str, monkeypatch: pytest.MonkeyPatch):
    stored = underlay(*command.split(), "--help")
    monkeypatch.setattr(main, "_stored_answer", lambda _: None)
    assert underlay(*command.split(), "--help") == stored


def test_help_for_a_narrow_terminal_is_rendered_anew():
    narrow = installed("sql", "--help", env={**os.environ, "COLUMNS": "60"})
    assert narrow.returncode == 0
    assert narrow.stdout.count(b"\n") > underlay("sql", "--help").text.count("\n")


def test_a_reader_of_help_that_leaves_early_is_no_failure():
    reader, writer = os.pipe()
    os.close(reader)
    run = installed("--help", stdout=writer)
    os.close(writer)
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_json(verb: str):
    assert "--json" in underlay(verb, "--help").text


def test_version():
    run = installed("--version")
    assert (run.returncode, run.stdout.decode(), run.stderr) == (0, f"underlay {__version__}\n", b"")


@pytest.mark.parametrize("arguments", [["nope"], ["pm", "nope"], ["pm", "show"], ["pm", "show", "--nope"]])
def test_wrong_usage_ends_with_2_and_says_where_help_is(arguments: list[str]):
    run = underlay(*arguments)
    assert (run.code, run.output) == (2, b"")
    assert "Error: " in run.words
    assert "-h' for help" in run.words


def test_an_error_is_one_message_on_stderr(tmp_path: Path):
    run = underlay("pm", "show", tmp_path / "none.pm")
    assert (run.code, run.output) == (3, b"")
    assert run.words == f"error: {tmp_path}/none.pm: no such file or directory\n"


def test_debug_adds_a_traceback_and_changes_no_exit_code(tmp_path: Path):
    run = underlay("--debug", "pm", "show", tmp_path / "none.pm")
    assert run.code == 3
    assert "Traceback" in run.words
    assert run.words.endswith(f"error: {tmp_path}/none.pm: no such file or directory\n")


def test_debug_may_stand_after_the_command(tmp_path: Path):
    assert "Traceback" in underlay("pm", "show", "--debug", tmp_path / "none.pm").words
    assert "Traceback" not in underlay("pm", "show", "--", "--debug").words


def test_a_fault_of_our_own_is_said_without_a_traceback(trips: Pair, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(pm_inspect, "dump", fail)
    run = underlay("pm", "dump", trips.sidecar)
    assert run.code == 1
    assert run.words.startswith("error: this is a bug in Underlay: KeyError: 'lost'")
    assert "Traceback" not in run.words


def test_a_reader_that_leaves_early_is_no_failure(trips: Pair):
    reader, writer = os.pipe()
    os.close(reader)
    run = installed("pm", "dump", trips.sidecar, stdout=writer)
    os.close(writer)
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("format", ["csv", "arrow"])
def test_a_full_disk_is_said_without_a_traceback(trips: Pair, format: str):
    with Path("/dev/full").open("wb") as full:
        run = installed("pm", "read", trips.sidecar, "--parquet", trips.data, "--format", format, stdout=full)
    assert (run.returncode, run.stderr.decode().splitlines()[-1]) == (7, "error: No space left on device")
    assert b"Traceback" not in run.stderr


@pytest.mark.parametrize("format", ["csv", "arrow"])
def test_ctrl_c_ends_quietly(tmp_path: Path, format: str):
    data = tmp_path / "large.parquet"
    pq.write_table(pa.table({"n": range(200_000)}), data)
    assert underlay("pm", "build", data).code == 0
    command = [SCRIPT, "pm", "read", tmp_path / "large.pm", "--parquet", data, "--format", format]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.read(1)  # now it writes, and waits for us to read more than a pipe holds
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=240)
    assert b"Traceback" not in words
    assert process.returncode == 130


def test_a_file_name_that_is_no_text_is_shown(trips: Pair):
    odd = os.fsencode(trips.sidecar.parent) + b"/\xff.pm"
    Path(os.fsdecode(odd)).write_bytes(trips.sidecar.read_bytes())
    for extra in ([], ["--json"]):
        run = subprocess.run([SCRIPT, "pm", "versions", odd, odd, *extra], capture_output=True, check=False)
        assert (run.returncode, run.stderr) == (0, b"")
        assert rb"\udcff.pm" in run.stdout
