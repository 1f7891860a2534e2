from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from underlay.errors import SchemaMismatch, SourceUnreadable
from underlay.ingest.rows.reading import Dialect
from underlay.ingest.rows.schema_drift import drift
from underlay.ingest.source.file_format import FileFormat
from underlay.ingest.work.infer_schema import Sample, combine, infer_one
from underlay.schema.convert.arrow import from_arrow


def csv(text: str, name: str = "a.csv") -> Sample:
    return name, FileFormat.CSV, io.BytesIO(text.encode())


def json(text: str, name: str = "a.json") -> Sample:
    return name, FileFormat.JSON, io.BytesIO(text.encode())


def parquet(table: pa.Table, name: str = "a.parquet") -> Sample:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return name, FileFormat.PARQUET, io.BytesIO(sink.getvalue())


def infer_schema(samples: list[Sample], dialect: Dialect | None = None) -> pa.Schema:
    return combine([(name, kind, infer_one(name, kind, file, dialect or Dialect())) for name, kind, file in samples])


def test_types_are_told_by_how_values_are_written():
    text = 'i,f,b,d,t,z,s,empty\n1,1.5,true,2024-01-01,2024-01-01 10:00,2024-01-01T10:00:00Z,"a\nb",NA\nshort\n'
    assert infer_schema([csv(text)], Dialect(nulls=("NA",))) == pa.schema(
        [
            ("i", pa.int64()),
            ("f", pa.float64()),
            ("b", pa.bool_()),
            ("d", pa.date32()),
            ("t", pa.timestamp("us")),
            ("z", pa.timestamp("us", "UTC")),
            ("s", pa.string()),
            ("empty", pa.string()),
        ]
    )
    lines = 'null\n{"i":1,"z":"2024-01-01T10:00:00Z","s":{"x":[1.5],"n":null}}\n{"i":null,"d":"2024-01-01"}\n{'
    assert infer_schema([json(lines)]) == pa.schema(
        [
            ("i", pa.int64()),
            ("z", pa.timestamp("us", "UTC")),
            ("s", pa.struct([("x", pa.list_(pa.float64())), ("n", pa.string())])),
            ("d", pa.date32()),
        ]
    )


def test_a_record_that_is_no_utf8_does_not_make_bytes_of_a_column_of_text():
    sample = "a.csv", FileFormat.CSV, io.BytesIO(b"id,name\n1,bob\n2,caf\xe9\n")
    assert infer_schema([sample]) == pa.schema([("id", pa.int64()), ("name", pa.string())])


def test_several_sources_give_the_columns_of_all_in_types_that_hold_both():
    samples = [csv("a,b\n1,\n"), json('{"a":1.5,"c":"x"}'), parquet(pa.table({"b": pa.array([1], pa.int16())}))]
    expected = pa.schema([("a", pa.float64()), ("b", pa.int16()), ("c", pa.string())])
    assert infer_schema(samples) == expected


def test_sources_without_a_common_type_are_an_error_that_names_both():
    with pytest.raises(SchemaMismatch, match=r"a\.csv and b\.json"):
        infer_schema([csv("a\n1\n"), json('{"a": "x"}\n', "b.json")])
    with pytest.raises(SchemaMismatch, match=r"a\.parquet and b\.parquet: a column has no type that holds"):
        infer_schema([parquet(pa.table({"n": [1]})), parquet(pa.table({"n": ["x"]}), "b.parquet")])


def test_numbers_that_parquet_declares_otherwise_have_a_type_that_may_hold_both():
    samples = [parquet(pa.table({"n": [1], "Fee": [1.5]})), parquet(pa.table({"n": [1.5], "fee": [1]}), "b.parquet")]
    assert infer_schema(samples) == pa.schema([("n", pa.float64()), ("Fee", pa.float64())])


def test_a_column_of_csv_that_is_written_in_different_ways_is_text():
    samples = [csv("a,b\n1,2\n"), csv("a,b\nx,2.5\n", "b.csv"), csv("b,c\n,2024-01-01\n", "c.csv")]
    expected = pa.schema([("a", pa.string()), ("b", pa.float64()), ("c", pa.date32())])
    assert infer_schema(samples) == expected


def test_a_source_that_shows_no_columns_is_an_error():
    for sample in (csv(""), json("[1]\n"), ("a.parquet", FileFormat.PARQUET, io.BytesIO(b"PAR1"))):
        with pytest.raises(SourceUnreadable, match=sample[0]):
            infer_schema([sample])
    with pytest.raises(SchemaMismatch, match="header"):
        infer_schema([csv("1,2\n")], Dialect(has_header=False))
    with pytest.raises(SchemaMismatch, match="no source"):
        infer_schema([])


def test_drift_says_what_is_new_and_refused():
    table = from_arrow(
        pa.schema(
            [("a", pa.int64()), ("b", pa.int64()), ("c", pa.string()), ("d", pa.date32()), ("_source", pa.string())]
        )
    )
    found = drift(table, pa.schema([("a", pa.int64()), ("b", pa.int8()), ("c", pa.int8()), ("e", pa.float64())]))
    assert [field.name for field in found.new] == ["e"]
    assert found.refused == ("c",)
