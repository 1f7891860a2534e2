"""Where a footer says that chunks lie, and footers that are refused."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from tests import genuine
from tests.index import patching
from tests.index.intake.test_statistics import footer_of, from_testing
from tests.index.known import entry_of, known
from underlay.errors import Malformed, Truncated, Unsupported
from underlay.index.intake.entries import file_entry
from underlay.index.intake.schema_match import Fit, match_schema
from underlay.index.intake.stack_arrays import FilePlace
from underlay.parquet.footer.tail import load_footer
from underlay.parquet.thrift.encode import I64
from underlay.schema.convert.arrow import from_arrow


def test_places_begin_at_the_dictionary_page():
    footer = footer_of(["a", "a"], pa.string())
    table = from_arrow(pa.schema([pa.field("c", pa.string())]))
    column = entry_of(footer, table).columns[0]
    assert struct.unpack("<q", column.begins) == (int(footer.chunks.dictionary_page_offset[0, 0]),)
    zero = load_footer(from_testing("dict-page-offset-zero")).footer
    name = zero.schema.leaves[0].path[0]
    table = from_arrow(pa.schema([pa.field(name, pa.int32())]))
    begins = np.frombuffer(entry_of(zero, table).columns[0].begins, "<i8")
    assert begins.tolist() == zero.chunks.data_page_offset[:, 0].tolist()


def test_a_chunk_outside_the_file_is_refused():
    footer = footer_of([1], pa.int64())
    table = from_arrow(pa.schema([pa.field("c", pa.int64())]))
    fit = match_schema(footer.schema, None, table)
    assert isinstance(fit, Fit)
    with pytest.raises(Truncated):
        file_entry(footer, fit.layout, table, FilePlace(location="x", size_bytes=20))


def test_a_footer_whose_row_groups_miss_rows_is_refused():
    footer = patching.with_field(footer_of([1], pa.int64()), 3, I64(7))
    with pytest.raises(Malformed):
        known(footer, pa.int64())


def test_encrypted_columns_are_refused():
    path = genuine.fixtures() / "parquet-testing" / "data" / "encrypt_columns_plaintext_footer.parquet.encrypted"
    footer = load_footer(path).footer
    table = from_arrow(pa.schema([pa.field("boolean_field", pa.bool_())]))
    with pytest.raises(Unsupported):
        entry_of(footer, table)
