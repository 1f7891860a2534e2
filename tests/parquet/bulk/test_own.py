"""Footers of ours, read by the form of an earlier one: the same as those read without it."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.gate import costly
from underlay.parquet.bulk.own import _LEARNT, MAX_FORMS, FormedTree, parse_own
from underlay.parquet.footer.chunks import CHUNKS, META
from underlay.parquet.footer.footer import Footer
from underlay.parquet.thrift.encode import I32, List, encode
from underlay.parquet.thrift.tree import ThriftKind
from underlay.parquet.write.writer import SortedBy, WriteOptions, write_files

TREE = ("place", "begin", "end", "next", "number")
PLAIN = ("schema", "version", "num_rows", "created_by", "key_values", "column_orders", "is_encrypted", "data")


def footer_of(columns: dict[str, pa.Array], **options: object) -> bytes:
    table = pa.table(columns)
    (file,) = write_files([table], table.schema, WriteOptions(**options))
    return file.footer.data


def assert_same(found: object, wanted: object, place: str = "footer") -> None:
    assert type(found) is type(wanted), place
    if is_dataclass(wanted):
        for field in fields(wanted):
            assert_same(getattr(found, field.name), getattr(wanted, field.name), f"{place}.{field.name}")
    elif isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype, place
        np.testing.assert_array_equal(found, wanted, place)
    elif isinstance(wanted, tuple) and any(isinstance(part, np.ndarray) for part in wanted):
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other, place)
    else:
        assert found == wanted, place


def assert_read_as_without_form(data: bytes) -> Footer:
    found, wanted = parse_own(data), Footer.parse(data)
    for name in PLAIN:
        assert getattr(found, name) == getattr(wanted, name), name
    for name in TREE[1:]:
        assert_same(getattr(found.tree, name), getattr(wanted.tree, name), name)
    entries = range(len(wanted.tree))
    assert [found.tree.kind(entry) for entry in entries] == [wanted.tree.kind(entry) for entry in entries]
    assert_same(found.row_groups, wanted.row_groups)
    assert_same(found.chunks, wanted.chunks)
    return found


def is_formed(footer: Footer) -> bool:
    return isinstance(footer.tree, FormedTree)


def test_the_third_footer_of_a_form_is_read_by_it():
    data = [footer_of({"a": pa.array([n, 10**n]), "s": pa.array(["x" * n, None])}) for n in range(1, 5)]
    _LEARNT.forms.clear()
    assert [is_formed(assert_read_as_without_form(one)) for one in data] == [False, False, True, True]


@costly
@given(data=st.data())
def test_any_footer_is_read_as_without_its_form(data: st.DataObject):
    names = data.draw(st.sampled_from([("a", "b", "c", "d"), ("long", "b", "c", "d")]))
    for _ in range(data.draw(st.integers(1, 4))):
        count = data.draw(st.integers(1, 4))

        def rows(values: st.SearchStrategy[object], count: int = count) -> list[object]:
            drawn: list[object] = data.draw(st.lists(st.none() | values, min_size=count, max_size=count))
            return drawn

        columns = (
            pa.array(rows(st.integers(-(2**63), 2**63 - 1)), pa.int64()),
            pa.array(rows(st.text(max_size=200)), pa.string()),
            pa.array(rows(st.floats()), pa.float64()),
            pa.array(rows(st.lists(st.integers(0, 3), max_size=2)), pa.list_(pa.int8())),
        )
        options = {
            "block_rows": data.draw(st.integers(1, 4)),
            "bloom": data.draw(st.sampled_from([{}, {"b": 0.01}])),
            "sorted_by": (SortedBy(data.draw(st.integers(0, 2)), data.draw(st.booleans())),),
            "codec": data.draw(st.sampled_from(["zstd", "none"])),
            "level": None,
        }
        assert_read_as_without_form(footer_of(dict(zip(names, columns, strict=True)), **options))


def test_footers_of_one_form_and_other_names_keep_their_names():
    for name in ("a", "b", "a", "longer", "a"):
        footer = assert_read_as_without_form(footer_of({name: pa.array([1])}))
        assert footer.schema.leaves[0].path == (name,)


def test_footers_of_one_form_and_other_encodings_keep_theirs():
    data = footer_of({"encoded": pa.array([1])})
    tree = Footer.parse(data).tree
    entry = int(tree.select((*CHUNKS, META, 2))[0])
    other = tree.write({entry: encode(List(ThriftKind.I32, (I32(5), I32(3)), False))})
    found = [assert_read_as_without_form(one) for one in (data, data, data, other, data)]
    assert all(is_formed(footer) for footer in found[2:])
    assert found[3].chunks.encodings.tolist() == [[1 << 5 | 1 << 3]]


def test_a_list_that_is_too_long_for_the_form_is_read_without_it():
    column = pa.array([1])
    for depth in range(20):
        column = pa.StructArray.from_arrays([column], [f"inner {depth}"])
    for _ in range(4):
        assert not is_formed(assert_read_as_without_form(footer_of({"a": column})))


def test_a_table_of_many_columns_is_read_by_its_form():
    data = footer_of({f"c{n}": pa.array([n]) for n in range(40)})
    _LEARNT.forms.clear()
    assert [is_formed(assert_read_as_without_form(data)) for _ in range(3)] == [False, False, True]


def test_what_footers_of_a_form_share_cannot_be_changed():
    data = footer_of({"shared": pa.array([1])})
    for _ in range(3):
        footer = parse_own(data)
    assert not footer.chunks.has_meta_data.flags.writeable


def test_few_forms_are_remembered():
    for count in range(MAX_FORMS + 10):
        parse_own(footer_of({f"c{n}": pa.array([n]) for n in range(count + 1)}))
        assert len(_LEARNT.forms) <= MAX_FORMS
