from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.parquet import footers
from underlay.errors import Malformed, Unsupported
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.logical import LogicalKind, TimeUnit
from underlay.parquet.footer.schema import Schema, read_schema
from underlay.parquet.footer.tail import load_footer
from underlay.parquet.thrift.encode import I32, List, Struct, ThriftBinary, encode
from underlay.parquet.thrift.tree import ThriftKind, parse
from underlay.values.physical import PhysicalType, Repetition


def group(name: str, children: int, repetition: int = 0, **fields: object) -> Struct:
    return Struct({3: I32(repetition), 4: ThriftBinary(name.encode()), 5: I32(children), **numbered(fields)})


def leaf(name: str, physical: int = 2, repetition: int = 0, **fields: object) -> Struct:
    return Struct({1: I32(physical), 3: I32(repetition), 4: ThriftBinary(name.encode()), **numbered(fields)})


def numbered(fields: dict[str, object]) -> dict[int, object]:
    return {int(name[1:]): value for name, value in fields.items()}


def schema_of(*elements: Struct) -> Schema:
    return read_schema(parse(encode(Struct({2: List(ThriftKind.STRUCT, elements)}))))


def written_schema(schema: pa.Schema, **options: object) -> Schema:
    return Footer.parse(footers.footer_bytes(footers.written(schema.empty_table(), **options))).schema


@pytest.mark.parametrize("folder", ["parquet-testing/data", "questdb/9.4.3", "questdb/10.0.0"])
def test_every_schema_says_what_pyarrow_says(folder):
    for path in footers.files(folder):
        if path.suffix == ".encrypted":
            continue
        try:
            theirs = pq.read_metadata(path).schema
        except OSError:
            continue
        ours = load_footer(path).footer.schema
        assert len(ours.leaves) == len(theirs)
        for index, column in enumerate(ours.leaves):
            other = theirs.column(index)
            assert ".".join(column.path) == other.path
            assert column.node.name == other.name
            assert column.physical_type.name == other.physical_type
            assert column.max_def_level == other.max_definition_level
            assert column.max_rep_level == other.max_repetition_level
            if column.physical_type is PhysicalType.FIXED_LEN_BYTE_ARRAY:
                assert column.node.type_length == other.length
            compare_logical(column.node.logical, other)


def compare_logical(ours, other):
    if ours.kind in (LogicalKind.UNRECOGNISED, LogicalKind.NONE):
        assert other.logical_type.type in ("NONE", "UNDEFINED")
        return
    assert other.logical_type.type == ("UNKNOWN" if ours.kind is LogicalKind.INTERVAL else ours.kind.name)
    if ours.kind is LogicalKind.DECIMAL:
        assert (ours.precision, ours.scale) == (other.precision, other.scale)


def test_logical_types_have_their_parameters():
    schema = pa.schema(
        {
            "u8": pa.uint8(),
            "ms": pa.timestamp("ms", "UTC"),
            "ns": pa.timestamp("ns"),
            "day": pa.date32(),
            "time": pa.time64("us"),
            "money": pa.decimal128(20, 3),
            "text": pa.string(),
            "half": pa.float16(),
            "bytes": pa.binary(),
        }
    )
    found = {column.path[0]: column.node.logical for column in written_schema(schema).leaves}
    assert (found["u8"].width, found["u8"].is_signed) == (8, False)
    assert (found["ms"].unit, found["ms"].is_utc) == (TimeUnit.MILLIS, True)
    assert (found["ns"].unit, found["ns"].is_utc) == (TimeUnit.NANOS, False)
    assert (found["time"].kind, found["time"].unit) == (LogicalKind.TIME, TimeUnit.MICROS)
    assert (found["money"].precision, found["money"].scale) == (20, 3)
    assert found["day"].kind is LogicalKind.DATE
    assert found["text"].kind is LogicalKind.STRING
    assert found["half"].kind is LogicalKind.FLOAT16
    assert found["bytes"].kind is LogicalKind.NONE


@pytest.mark.parametrize(
    ("converted", "kind"),
    [(0, "STRING"), (3, "LIST"), (5, "DECIMAL"), (9, "TIMESTAMP"), (14, "INT"), (21, "INTERVAL"), (99, "UNRECOGNISED")],
)
def test_a_converted_type_alone_is_told_apart(converted, kind):
    node = schema_of(group("r", 1), leaf("c", _6=I32(converted), _7=I32(2), _8=I32(9))).leaves[0].node
    assert node.logical.kind is LogicalKind[kind]
    assert node.is_logical_from_converted
    assert (node.logical_member, node.converted_type) == (None, converted)


def test_a_logical_type_goes_before_the_converted_one():
    node = schema_of(group("r", 1), leaf("c", _6=I32(0), _10=Struct({12: Struct({})}))).leaves[0].node
    assert (node.logical.kind, node.logical_member, node.converted_type) == (LogicalKind.JSON, 12, 0)
    assert not node.is_logical_from_converted


@pytest.mark.parametrize(
    ("union", "member"),
    [(Struct({77: Struct({})}), 77), (Struct({}), 0), (Struct({8: Struct({2: Struct({9: Struct({})})})}), 8)],
)
def test_logical_types_that_nobody_knows_are_kept_as_unrecognised(union, member):
    node = schema_of(group("r", 1), leaf("c", _10=union)).leaves[0].node
    assert (node.logical.kind, node.logical_member) == (LogicalKind.UNRECOGNISED, member)


def test_leaves_know_their_top_level_field_and_levels():
    schema = schema_of(
        group("root", 2),
        group("outer", 2, 1, _9=I32(7)),
        leaf("a", 1, 1, _9=I32(8)),
        group("inner", 1, 2),
        leaf("b", 5),
        leaf("last", 6, 2),
    )
    a, b, last = schema.leaves
    assert (a.path, a.max_def_level, a.max_rep_level) == (("outer", "a"), 2, 0)
    assert (b.path, b.max_def_level, b.max_rep_level) == (("outer", "inner", "b"), 2, 1)
    assert (last.path, last.max_def_level, last.max_rep_level) == (("last",), 1, 1)
    assert (a.top.name, a.top.field_id, a.top.repetition) == ("outer", 7, Repetition.OPTIONAL)
    assert (a.node.field_id, b.node.field_id) == (8, None)
    assert [column.index for column in schema.leaves] == [0, 1, 2]


def test_columns_that_are_nothing_but_lists_count_their_dimensions():
    schema = pa.schema(
        {
            "plain": pa.float64(),
            "one": pa.list_(pa.float64()),
            "three": pa.list_(pa.list_(pa.list_(pa.float64()))),
            "pairs": pa.list_(pa.struct({"x": pa.float64(), "y": pa.float64()})),
            "map": pa.map_(pa.string(), pa.float64()),
        }
    )
    found = {column.path: column.array_ndims for column in written_schema(schema).leaves}
    assert [ndims for path, ndims in found.items() if path[0] in ("plain", "one", "three")] == [0, 1, 3]
    assert not any(ndims for path, ndims in found.items() if path[0] in ("pairs", "map"))


def test_the_stored_elements_are_kept():
    elements = (group("r", 1), leaf("c"))
    assert schema_of(*elements).raw == encode(List(ThriftKind.STRUCT, elements))


@pytest.mark.parametrize(
    ("elements", "reason"),
    [
        ((), "no root"),
        ((group("r", -1),), "out of range"),
        ((group("r", 2), leaf("c")), "out of range"),
        ((group("r", 2), group("g", 1), leaf("c")), "fewer elements"),
        ((group("r", 2**31 - 1), leaf("c")), "out of range"),
        ((group("r", 1), leaf("c"), leaf("d")), "outside"),
        ((group("r", 1), Struct({3: I32(0), 4: ThriftBinary(b"c")})), "neither a type"),
        ((group("r", 1), Struct({1: I32(2)})), "no name"),
        ((group("r", 1), leaf("c", repetition=3)), "repetition"),
        ((group("r", 1), Struct({1: I32(2), 4: ThriftBinary(b"\xff")})), "UTF-8"),
        ((*(group("g", 1) for _ in range(70)), leaf("c")), "deep"),
    ],
)
def test_hostile_schemas_are_refused(elements, reason):
    with pytest.raises(Malformed, match=reason):
        schema_of(*elements)


def test_a_physical_type_that_nobody_knows_is_unsupported():
    with pytest.raises(Unsupported, match="physical type"):
        schema_of(group("r", 1), leaf("c", 8))


def test_a_footer_without_a_schema_is_refused():
    with pytest.raises(Malformed, match="no schema"):
        read_schema(parse(encode(Struct({1: I32(1)}))))


def test_a_wide_schema_is_read():
    wide = schema_of(group("r", 10_000), *(leaf(f"column {n}") for n in range(10_000)))
    assert [column.index for column in wide.leaves] == list(range(10_000))
