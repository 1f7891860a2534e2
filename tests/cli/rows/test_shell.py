"""The shell of `underlay sql`."""

from __future__ import annotations

import os
import pty
import select
import stat
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.cli.common.formats import RowsAs
from underlay.cli.rows.agreement import is_agreed
from underlay.cli.rows.shell import Shell, is_complete


@pytest.fixture
def shell(taxi: Table, lake: Lake) -> Shell:
    return Shell(lake, format=RowsAs.TABLE, limit=None)


def offered(shell: Shell, text: str) -> list[str]:
    document = Document(text, len(text))
    return [one.text for one in shell.completer.get_completions(document, CompleteEvent())]


def test_a_statement_goes_on_until_its_semicolon():
    assert not is_complete("select 1")
    assert not is_complete("select ';")
    assert not is_complete("select 1 -- ;")
    assert is_complete("select\n1;")
    assert all(map(is_complete, ["", "\\d", "\\q", "exit", "help"]))


def test_rows_errors_and_timing(shell: Shell, capsys: pytest.CaptureFixture[str]):
    assert shell.run("select count(*) as n\nfrom taxi.trips; select nothing; select 2;")
    seen = capsys.readouterr()
    assert seen.out == "n\n3\n"
    assert "(1 row)\ntime: " in seen.err
    assert 'error: Binder Error: Referenced column "nothing"' in seen.err
    shell.run("\\timing")
    shell.run("select 1;")
    assert "time: " not in capsys.readouterr().err


def test_tables_and_columns_are_described(shell: Shell, capsys: pytest.CaptureFixture[str]):
    shell.run("\\d")
    assert capsys.readouterr().out == "dataset  table\ntaxi     trips\n"
    shell.run("\\d TAXI.trips")
    assert "pickup  timestamp(us)" in capsys.readouterr().out
    shell.run("\\d taxi.nothing")
    assert "error: " in capsys.readouterr().err


def test_the_key_and_the_layout_are_described(shell: Shell, lake: Lake, capsys: pytest.CaptureFixture[str]):
    lake.create_table(
        "a.laid", "id bigint, at timestamp, zone string", key=["id"], sort_by=["-at"], partition_by=["day(at)", "zone"]
    )
    shell.run("\\d a.laid")
    seen = capsys.readouterr().out
    assert seen.endswith("key: id\nsort by: at desc\npartition by: day(at), zone\n"), seen


def test_formats_and_files(shell: Shell, place: Path, capsys: pytest.CaptureFixture[str]):
    shell.run("\\x")
    shell.run("select 1 as a;")
    assert capsys.readouterr().out == "row 1\n  a  1\n"
    shell.run("\\x off")
    shell.run("\\f csv")
    shell.run("\\o rows.parquet")
    shell.run("select 1 as a;")
    shell.run("select 2 as a;")
    assert capsys.readouterr().out == '"a"\n2\n'
    assert (place / "rows.parquet").exists()


@pytest.mark.parametrize(
    "command", ["\\f parquet", "\\f nothing", "\\limit x", "\\o rows.xyz", "\\nothing", "\\x maybe"]
)
def test_a_command_that_cannot_be_is_an_error_and_the_shell_goes_on(
    shell: Shell, command: str, capsys: pytest.CaptureFixture[str]
):
    assert shell.run(command)
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize("word", ["\\q", "exit", "quit;", "EXIT"])
def test_words_that_leave(shell: Shell, word: str):
    assert not shell.run(word)


def test_names_are_completed(shell: Shell, lake: Lake):
    lake.create_table("taxi.by-zone", "id bigint")
    assert offered(shell, "select * from ta") == ['taxi."by-zone"', "taxi.trips", "taxi"]
    assert offered(shell, "select * from taxi.") == ['"by-zone"', "trips"]
    assert offered(shell, "select * from taxi.trips where pick") == ["pickup"]
    assert offered(shell, "select t. from taxi.trips t"[:9]) == []
    assert "order by" in offered(shell, "select * from taxi.trips ord")
    assert offered(shell, "\\ti") == ["\\timing"]
    assert offered(shell, "select trips.fa") == ["fare"]


def test_on_a_terminal(taxi: Table, place: Path):
    """Many lines, completion, an error, Ctrl-C on a line and on a query, history, and Ctrl-D."""
    main, end = pty.openpty()
    environment = {**os.environ, "XDG_STATE_HOME": str(place / "state"), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    process = subprocess.Popen([sys.executable, "-m", "underlay", "sql"], stdin=end, stdout=end, stderr=end,
                               env=environment, start_new_session=True, preexec_fn=_take_terminal)  # fmt: skip
    os.close(end)
    screen = Screen(main)
    try:
        screen.wait_for("underlay>")
        os.write(main, b"select count(*) as n\r")
        screen.wait_for("...>")
        os.write(main, b"from taxi.tr\t")
        screen.wait_for("ips")
        os.write(main, b";\r")
        assert "3" in screen.wait_for("time: ")
        screen.wait_for("underlay>")
        os.write(main, b"selec 1;\r")
        screen.wait_for("error: not a statement that reads")
        screen.wait_for("underlay>")
        os.write(main, b"select thrown away")
        screen.wait_for("thrown")
        os.write(main, b"\x03")
        screen.wait_for("underlay>")
        for _ in range(20):
            os.write(main, b"select 41 + 1 as kept, count(*) from range(10000000000000) where range % 7 = 3;\r")
            screen.comes("[?2004l", 15)  # the prompt ends; a moment later Ctrl-C is a signal again
            # One that comes too early is a key that nobody reads, or throws the line away: then once more.
            os.write(main, b"\x03")
            if screen.comes("cancelled", 15):
                break
        screen.wait_for("cancelled")
        screen.wait_for("underlay>")
        os.write(main, b"select 41 + 1;\r")
        screen.wait_for("42")
        screen.wait_for("underlay>")
        os.write(main, b"\x04")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(main)
    history = place / "state" / "underlay" / "sql_history"
    assert "+selec 1;" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert stat.S_IMODE(history.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("statement", "asked"),
    [
        ("delete from TAXI.trips", "taxi.trips: all 3 rows would be deleted. Do it?"),
        ("delete from taxi.trips as t using (select 1 as i) as s", "taxi.trips: all 3 rows would be deleted. Do it?"),
        ("with s as (select 1) delete from taxi.trips", "taxi.trips: all 3 rows would be deleted. Do it?"),
        ("-- all\nupdate taxi.trips set fare = 0", "taxi.trips: all 3 rows would be updated. Do it?"),
        ("truncate taxi.trips", "taxi.trips: all 3 rows would be deleted. Do it?"),
        ("drop table if exists taxi.trips", "taxi.trips: the table would be dropped, with 3 rows and all its versions"),
        ("alter table taxi.trips drop column fare", "drop column fare"),
    ],
)
def test_what_would_go_as_a_whole_is_asked_for_on_a_terminal(
    taxi: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch, statement: str, asked: str
):
    questions: list[str] = []
    answers = iter([False, True])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda text, err: (questions.append(text), next(answers))[1])
    shell = Shell(lake, format=RowsAs.TABLE, limit=None)
    before = lake.table("taxi.trips").version
    shell.run(f"{statement};")
    assert lake.table("taxi.trips").version == before
    shell.run(f"{statement};")
    assert "taxi.trips" not in [one.name for one in lake.tables()] or lake.table("taxi.trips").version == before + 1
    assert len(questions) == 2
    assert asked in questions[0]


@pytest.mark.parametrize(
    "statement",
    [
        "delete from taxi.trips where fare > 1e9",
        "update taxi.trips set fare = 1 where fare > 1e9",
        "alter table taxi.trips add column tip double",
        "explain delete from taxi.trips",
        "drop table if exists taxi.nothing",
        "select 1",
        "insert into taxi.trips select * from taxi.trips",
    ],
)
def test_nothing_else_is_asked_for(taxi: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch, statement: str):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: pytest.fail("asked"))
    assert is_agreed(lake, statement, yes=False)


def test_without_a_terminal_or_with_yes_nothing_is_asked(taxi: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch):
    assert is_agreed(lake, "delete from taxi.trips", yes=False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: pytest.fail("asked"))
    assert is_agreed(lake, "delete from taxi.trips", yes=True)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Screen:
    """What comes from a terminal, each text once."""

    def __init__(self, main: int) -> None:
        self._main = main
        self._unread = ""

    def comes(self, text: str, seconds: float) -> bool:
        """Whether the text has come, or comes within these seconds."""
        until = monotonic() + seconds
        while text not in self._unread and (left := until - monotonic()) > 0:
            if select.select([self._main], [], [], left)[0]:
                self._unread += os.read(self._main, 1 << 16).decode("utf-8", "replace")
        return text in self._unread

    def wait_for(self, text: str) -> str:
        """All up to the next occurrence of the text."""
        assert self.comes(text, 300), f"{text!r} did not come: {self._unread[-2000:]}"
        before, _, self._unread = self._unread.partition(text)
        return before
