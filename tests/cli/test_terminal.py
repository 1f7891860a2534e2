"""What commands ask on a real terminal, and what the answers do."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import termios

import pytest

from tests.cli.command import SCRIPT
from underlay.api.lake import Lake
from underlay.api.table import Table

QUESTION = b"[y/N]: "


def take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def answered(*arguments: str, answers: bytes) -> tuple[int, str]:
    """Run the installed command on a terminal of its own and type these answers, one after each question; its exit code
    and all that is then on the screen. A key that Python missed between its prompt and its wait for input is pressed
    again, as a user would."""
    main, end = pty.openpty()
    process = subprocess.Popen(
        [SCRIPT, *arguments], stdin=end, stdout=end, stderr=end, start_new_session=True, preexec_fn=take_terminal
    )
    os.close(end)
    screen, asked = b"", 0
    try:
        while True:
            while asked and not answers[-1:].isspace() and not select.select([main], [], [], 5)[0]:
                os.write(main, answers)
            try:
                seen = os.read(main, 4096)  # it comes to an end with the process
            except OSError:  # what Linux says of a terminal that nobody has any more
                break
            screen += seen
            while screen.count(QUESTION) > asked and asked < len(answers.splitlines(keepends=True)):
                os.write(main, answers.splitlines(keepends=True)[asked])
                asked += 1
        return process.wait(240), screen.decode().replace("\r\n", "\n")
    finally:
        process.kill()
        process.wait()
        os.close(main)


@pytest.fixture
def trips(lake: Lake) -> Table:
    table = lake.create_table("a.trips", "id bigint, fare double")
    lake.sql("insert into a.trips values (1, 1.5), (2, 2.5)").to_arrow()
    return table


@pytest.mark.parametrize("answers", [b"perhaps\nno\n", b"\x03", b"\x04"])
def test_no_ctrl_c_and_the_end_of_the_input_change_nothing(trips: Table, answers: bytes):
    code, screen = answered("delete", "a.trips", answers=answers)
    assert screen.startswith("a.trips: all 2 rows would be deleted. Do it? ")
    assert (code, screen.splitlines()[-1]) == (0, "Nothing was changed.")
    assert trips.version == 1


@pytest.mark.parametrize(
    ("arguments", "question"),
    [
        (("delete", "a.trips"), "all 2 rows would be deleted"),
        (("alter", "a.trips", "drop column fare"), "one commit would drop column fare; no data file is rewritten"),
        (("sql", "truncate a.trips"), "all 2 rows would be deleted"),
    ],
)
def test_yes_does_it(trips: Table, arguments: tuple[str, ...], question: str):
    code, screen = answered(*arguments, answers=b"y\n")
    assert code == 0
    assert f"{question}. Do it? [y/N]:" in screen
    assert trips.version == 2


def test_drops_are_never_asked_for(trips: Table, lake: Lake):
    """They say what would go, and want --yes: a habit of answering y costs no table."""
    code, screen = answered("drop", "a.trips", answers=b"y\n")
    assert (code, screen.splitlines()[-1]) == (2, "Nothing was changed; add --yes to do it.")
    assert [one.name for one in lake.tables()] == ["a.trips"]
