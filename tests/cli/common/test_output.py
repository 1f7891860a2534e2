"""Tables, sizes, JSON lines and failures of one among many."""

from __future__ import annotations

import io
import sys

import pytest

from underlay.cli.common.output import (
    cell_width,
    print_json,
    print_rows,
    print_table,
    printable,
    show_bytes,
    show_count,
    try_each,
)
from underlay.errors import NotFound, UnderlayError


def test_numbers_are_aligned_to_the_right_and_lines_have_no_trailing_blanks(capsys: pytest.CaptureFixture[str]):
    print_table(("name", "rows", "why"), [("a", 5, ""), ("long", 1234, "x"), ("b", None, "")])
    assert capsys.readouterr().out == "name  rows  why\na        5\nlong  1234  x\nb        –\n"


def test_a_piped_table_is_as_wide_as_it_needs_to_be(capsys: pytest.CaptureFixture[str]):
    print_table(("value",), [("x" * 500,)])
    assert capsys.readouterr().out.splitlines()[1] == "x" * 500


def test_control_characters_cannot_reach_a_terminal():
    assert printable("a\x1b[31mb\nc\td\udcffé˅") == r"a\x1b[31mb\nc\td\udcffé˅"


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB"), (5 << 50, "5120.0 TiB")],
)
def test_sizes_are_shown_with_their_unit(size: int, shown: str):
    assert show_bytes(size) == shown


def test_one_is_singular():
    assert [show_count(n, "range") for n in (0, 1, 2)] == ["0 ranges", "1 range", "2 ranges"]


def test_json_is_one_line_of_ascii(capsys: pytest.CaptureFixture[str]):
    print_json({"a": "˅\n\udcff", "b": None})
    assert capsys.readouterr().out == '{"a":"\\u02c5\\n\\udcff","b":null}\n'


def fail_at_two(item: int) -> None:
    if item % 2 == 0:
        raise NotFound(f"no {item}")


def test_one_failure_among_many_is_said_and_the_others_get_their_turn(capsys: pytest.CaptureFixture[str]):
    seen: list[int] = []

    def act(item: int) -> None:
        seen.append(item)
        fail_at_two(item)

    first = try_each([1, 2, 3, 4], act, "trying")
    assert seen == [1, 2, 3, 4]
    assert str(first) == "no 2"
    assert capsys.readouterr().err == "error: no 2\nerror: no 4\n"


def test_the_failure_of_a_single_item_is_raised():
    with pytest.raises(UnderlayError, match="no 2"):
        try_each([2], fail_at_two, "trying")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(
    columns: int, headings: list[str], rows: list[list[object]], whole: tuple[int, ...] = ()
) -> tuple[int, list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setattr(sys, "stdout", Terminal())
        hidden = print_rows(headings, rows, whole)
        return hidden, sys.stdout.getvalue().splitlines()


def test_rows_too_wide_for_a_terminal_lose_columns_in_the_middle():
    names = [f"column_{i}" for i in range(300)]
    hidden, lines = on_terminal(50, names, [[str(i) for i in range(300)]])
    assert hidden == 296
    assert [line.split() for line in lines] == [
        ["column_0", "column_1", "…", "column_298", "column_299"],
        ["0", "1", "…", "298", "299"],
    ]


def test_texts_are_shortened_before_columns_are_left_out():
    hidden, lines = on_terminal(40, ["id", "a", "b"], [[1, "x" * 100, "y" * 15]])
    assert (hidden, lines[1]) == (0, f" 1  {'x' * 18}…  {'y' * 15}")


def test_columns_that_are_whole_are_left_out_and_not_shortened():
    when = "2024-01-01 12:30:05"
    hidden, lines = on_terminal(40, ["when it began", "text", "end"], [[when, "x" * 100, when]], whole=(0, 2))
    assert (hidden, lines[1]) == (2, f"{when}  …")
    hidden, lines = on_terminal(60, ["when it began", "text", "end"], [[when, "x" * 100, when]], whole=(0, 2))
    assert (hidden, lines[1]) == (0, f"{when}  {'x' * 17}…  {when}")


def test_numbers_are_never_shortened():
    number = "123456789012345678901234567890.12345678"
    hidden, lines = on_terminal(20, ["a", "decimal", "z"], [[1, number, 2]])
    assert (hidden, lines[1].split()) == (1, ["1", "…", "2"])
    assert on_terminal(20, ["decimal"], [[number]])[1][1] == number


@pytest.mark.parametrize("columns", range(1, 60))
def test_no_line_is_longer_than_the_terminal(columns: int):
    rows = [["日本語の長いテキスト", "é" * 30, 12345, "x" * 30], [None, "", 1, "y"]]
    hidden, lines = on_terminal(columns, ["text", "a long heading", "n", "last"], rows)
    widest = max(map(cell_width, lines))
    assert widest <= columns or hidden == 3


def test_wide_characters_take_two_columns_of_a_terminal():
    assert [cell_width(text) for text in ("abc", "é", "e\u0301", "日本")] == [3, 1, 1, 4]
