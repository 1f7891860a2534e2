"""Footers taken apart and put together again."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from underlay.parquet.footer.assemble import take_apart
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.splice import SplicePart, shift_offsets, splice
from underlay.parquet.footer.tail import TAIL_BYTES, read_tail


def footer_of(rows: int, group: int) -> Footer:
    sink = io.BytesIO()
    table = pa.table({"a": range(rows), "b": [str(at) for at in range(rows)]})
    pq.write_table(table, sink, row_group_size=group, bloom_filter_options={"a": {"ndv": 10, "fpp": 0.1}})
    data = sink.getvalue()
    return Footer.parse(data[read_tail(data[-TAIL_BYTES:], len(data)).footer_offset : -TAIL_BYTES])


@pytest.mark.parametrize("groups", [1, 2, 14, 15, 40])
def test_a_footer_put_together_again_is_itself(groups: int):
    footer = footer_of(3 * groups, 3)
    form, found = take_apart(footer)
    assert len(found) == groups
    assert form.footer(found, 3 * groups) == footer.data


@pytest.mark.parametrize("delta", [1, 200, 1 << 20, 1 << 40])
def test_moved_row_groups_are_those_of_a_shifted_footer(delta: int):
    footer = footer_of(9, 3)
    form, found = take_apart(footer, delta)
    assert form.footer(found, 9) == shift_offsets(footer, delta)


def test_row_groups_of_two_footers_are_spliced_as_before():
    one, other = footer_of(6, 3), footer_of(4, 2)
    form, first = take_apart(one)
    other_form, second = take_apart(other, 1000)
    assert form == other_form
    wanted = splice([SplicePart(one, [1], 0), SplicePart(other, [1, 0], 1000)])
    assert form.footer([first[1], second[1], second[0]], 7) == wanted
