"""Reading footers together gives what reading them one by one gives."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gate import costly
from tests.parquet.footers import example, footer_bytes, plain_footers, written
from underlay.errors import Damaged, UnderlayError
from underlay.parquet.footer import stack as module
from underlay.parquet.footer.chunks import IndexedChunks, Statistics
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.stack import Stack, read_stacks, stack_of
from underlay.parquet.records import walk
from underlay.parquet.records.records import Spans


def assert_same_values(together: Stack, row: int, single: Stack) -> None:
    """The rows of a stack from `row` on are those of a file alone."""
    rows = slice(row, row + single.row_counts.size)
    assert together.row_counts[rows].tolist() == single.row_counts.tolist()
    assert_same_fields(together.chunks, single.chunks, rows, together.data, single.data)


def assert_same_fields(
    left: IndexedChunks | Statistics, right: IndexedChunks | Statistics, rows: slice, *data: bytes
) -> None:
    for field in dataclasses.fields(left):
        mine, theirs = getattr(left, field.name), getattr(right, field.name)
        if isinstance(mine, Statistics):
            assert_same_fields(mine, theirs, rows, *data)
        elif isinstance(mine, Spans):
            assert texts(Spans(mine.begin[rows], mine.length[rows]), data[0]) == texts(theirs, data[1]), field.name
        else:
            assert np.array_equal(mine[rows], theirs), field.name


def texts(spans: Spans, data: bytes) -> list[bytes | None]:
    pairs = zip(spans.begin.ravel().tolist(), spans.length.ravel().tolist(), strict=True)
    return [None if begin < 0 else data[begin : begin + length] for begin, length in pairs]


def assert_read_alike(footers: list[bytes]) -> list[tuple[Stack, list[int]]]:
    stacks = list(read_stacks(footers))
    assert sorted(index for _, indices in stacks for index in indices) == list(range(len(footers)))
    for stack, indices in stacks:
        for row, index, origin in zip(stack.begins, indices, stack.origins, strict=False):
            single = stack_of(Footer.parse(footers[index]))
            assert stack.schema == single.schema
            assert origin == single.origins[0]
            assert_same_values(stack, row, single)
    return stacks


@pytest.mark.parametrize("sizes", [(3, 127, 128, 300), (300, 5, 128), (127, 2_000, 1), (1, 2, 3)])
def test_binaries_may_be_short_in_one_file_and_long_in_another(sizes: tuple[int, ...]):
    footers = [footer_bytes(written(pa.table({"s": ["a" * size, "b" * size], "n": [1, size]}))) for size in sizes]
    assert len(assert_read_alike(footers)) == 1


def test_files_of_one_writer_are_one_stack():
    footers = [footer_bytes(example(start=7**n, write_page_index=True)) for n in range(20)]
    stacks = assert_read_alike(footers)
    assert len(stacks) == 1


def test_files_of_other_forms_and_schemas_are_stacks_of_their_own():
    tables = [
        pa.table({"a": [1, 2], "b": ["x", "y" * 300]}),
        pa.table({"a": [1, None], "b": ["x", None]}),
        pa.table({"a": pa.array([None, None], pa.int64()), "b": ["x", "y"]}),
        pa.table({"a": [1.5], "b": ["x"]}),
        pa.table({"a": [2**60], "b": ["z" * 200]}),
    ]
    footers = [footer_bytes(written(table, row_group_size=size)) for table in tables for size in (1, 2)]
    assert len(assert_read_alike(footers)) > 2


@costly
@given(
    st.lists(
        st.lists(
            st.tuples(st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | st.text(max_size=200)), max_size=5
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_files_read_as_they_do_alone(files):
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string())])
    tables = [pa.table(list(zip(*rows, strict=True)) or [[], []], schema=schema) for rows in files]
    assert_read_alike([footer_bytes(written(table, row_group_size=2)) for table in tables])


@pytest.mark.parametrize("folder", ["parquet-testing/data", "questdb/10.0.0"])
def test_genuine_footers_read_as_they_do_alone(folder):
    footers = [data for _, data in plain_footers(folder) if is_sound(data)]
    assert len(footers) > 20
    assert_read_alike(footers)


def test_one_footer_of_a_form_is_parsed_and_those_with_the_same_lengths_are_not_walked(
    monkeypatch: pytest.MonkeyPatch,
):
    footers = [footer_bytes(example(start=2 * n, compression="none")) for n in range(100, 190)]
    common = max({len(footer) for footer in footers}, key=lambda size: sum(len(one) == size for one in footers))
    footers = [footer for footer in footers if len(footer) == common]
    assert len(footers) > 20
    expected = [stack_of(Footer.parse(footer)).origins[0] for footer in footers]
    parsed, walked = [], []
    parse, walk_uneven = Footer.parse, walk._walk_uneven

    def note_walk(*arguments):
        walked.append(arguments[-1].size)
        return walk_uneven(*arguments)

    monkeypatch.setattr(module, "FOOTERS_AT_ONCE", 8)
    monkeypatch.setattr(Footer, "parse", lambda data: parsed.append(data) or parse(data))
    monkeypatch.setattr(walk, "_walk_uneven", note_walk)
    found = list(read_stacks(footers))
    assert [origin for stack, _ in found for origin in stack.origins] == expected
    assert len(parsed) == 1
    assert sum(walked) < len(footers)
    assert_read_alike(footers)


@pytest.mark.parametrize("first", [0, 2**62])
def test_a_lead_need_not_be_in_the_stack(first: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "FOOTERS_AT_ONCE", 3)
    starts = [first, *range(5), 2**40, *range(9), first, 300, 300, 300]
    assert_read_alike([footer_bytes(example(start=start)) for start in starts])


def is_sound(data: bytes) -> bool:
    try:
        stack_of(Footer.parse(data))
    except UnderlayError:
        return False
    return True


def test_a_damaged_footer_is_named_and_no_other_is_touched():
    good = footer_bytes(example())
    with pytest.raises(Damaged, match="footer 2"):
        list(read_stacks([good, good, good[:-1], good]))
    with pytest.raises(Damaged, match="footer 1"):
        list(read_stacks([good, good + b"\x00", good]))
    with pytest.raises(Damaged, match="footer 1"):
        list(read_stacks([good, good + good, good[:-1], good]))


def test_flipped_bytes_never_give_another_answer_than_reading_alone():
    good = footer_bytes(example(rows=6))
    random = np.random.default_rng(3)
    for _ in range(150):
        changed = bytearray(good)
        changed[int(random.integers(len(good)))] = int(random.integers(256))
        if is_sound(bytes(changed)):
            assert_read_alike([good, bytes(changed), good])
        else:
            with pytest.raises(UnderlayError):
                list(read_stacks([good, bytes(changed), good]))


def test_no_footers_are_no_stacks():
    assert list(read_stacks([])) == []
