from __future__ import annotations

import pytest
from hypothesis import given

from tests.schema.examples import field, schemas
from underlay.errors import InvalidRequest, SchemaMismatch, Unsupported
from underlay.schema.convert.ddl import format_ddl, parse_ddl
from underlay.schema.ids import number_fields
from underlay.schema.table_schema import TableSchema


@given(schemas())
def test_a_schema_comes_back_from_its_ddl(schema: TableSchema):
    assert parse_ddl(format_ddl(schema)) == schema


@pytest.mark.parametrize(
    ("written", "type_"),
    [
        ("tinyint", "int8"),
        ("SMALLINT", "int16"),
        ("int", "int32"),
        ("integer", "int32"),
        ("bigint", "int64"),
        ("long", "int64"),
        ("utinyint", "uint8"),
        ("usmallint", "uint16"),
        ("uinteger", "uint32"),
        ("ubigint", "uint64"),
        ("real", "float32"),
        ("float", "float32"),
        ("double", "float64"),
        ("double precision", "float64"),
        ("text", "string"),
        ("varchar", "string"),
        ("varchar(20)", "string"),
        ("char(3)", "string"),
        ("character varying(20)", "string"),
        ("json", "string"),
        ("varchar(20)[]", "list<string>"),
        ("STRING", "string"),
        ("blob", "binary"),
        ("binary", "binary"),
        ("binary(16)", "fixed(16)"),
        ("fixed(16)", "fixed(16)"),
        ("bool", "boolean"),
        ("date", "date"),
        ("time", "time(us)"),
        ("timestamp", "timestamp(us)"),
        ("datetime", "timestamp(us)"),
        ("timestamp_ns", "timestamp(ns)"),
        ("timestamp_ms", "timestamp(ms)"),
        ("timestamp_s", "timestamp(s)"),
        ("timestamp_ntz", "timestamp(us)"),
        ("timestamptz", "timestamp(us, UTC)"),
        ("timestamp with time zone", "timestamp(us, UTC)"),
        ("timestamp(ms, 'Europe/Berlin')", "timestamp(ms, Europe/Berlin)"),
        ('timestamp(us, "UTC")', "timestamp(us, UTC)"),
        ("timestamp without time zone", "timestamp(us)"),
        ("timestamp(3)", "timestamp(ms)"),
        ("timestamp(ns, Europe/Warsaw)", "timestamp(ns, Europe/Warsaw)"),
        ("timestamp(us, +02:00)", "timestamp(us, +02:00)"),
        ("uuid", "uuid"),
        ("decimal(10,2)", "decimal(10, 2)"),
        ("numeric(10)", "decimal(10, 0)"),
        ("decimal", "decimal(18, 3)"),
        ("array<string>", "list<string>"),
        ("varchar[]", "list<string>"),
        ("int[3]", "list<int32>"),
        ("int[][]", "list<list<int32>>"),
        ("map<string,int>", "map<string, int32>"),
        ("map(varchar, int[])", "map<string, list<int32>>"),
        ("struct<x: double, y: double>", "struct<x: float64, y: float64>"),
        ("struct(x double, y map<string,array<int>>)", "struct<x: float64, y: map<string, list<int32>>>"),
    ],
)
def test_a_type_may_be_written_as_in_spark_and_duckdb(written, type_):
    assert str(parse_ddl(f"c {written}").fields[0].type) == type_


def test_a_column_may_be_required_and_have_a_comment_and_a_default():
    schema = parse_ddl("id bigint not null comment 'the key''s', zone int null default -5, s string default null")
    assert schema == number_fields(
        [
            field("id", "int64", is_required=True, comment="the key's"),
            field("zone", "int32", default="-5"),
            field("s", "string"),
        ]
    )


def test_a_default_is_written_and_read_back():
    schema = number_fields(
        [field("at", "timestamp(us)", default="2024-01-31 00:00:00"), field("b", "fixed(2)", default="00ff")]
    )
    assert parse_ddl(format_ddl(schema)) == schema


def test_a_list_has_its_id_before_its_element_and_the_element_before_its_parts():
    schema = parse_ddl("a struct<x: int, y: int>[], b int")
    assert [leaf.id for leaf in schema.leaves] == [3, 4, 5]


def test_create_table_may_stand_around_the_columns():
    plain = parse_ddl("id bigint, name string")
    assert parse_ddl("CREATE TABLE IF NOT EXISTS db.t (id bigint, name string);") == plain


def test_names_may_be_quoted_and_may_be_keywords():
    assert parse_ddl('"x y" int, `a``b` int, comment string, order int').names == ("x y", "a`b", "comment", "order")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id",
        "id bigint,",
        "id bigint name string",
        "a array<int",
        "a struct<>",
        "a 5",
        "'a' int",
        "a int(3",
        "a '",
        "a int default x",
        "a map<int>",
        "create table t",
        "a int not",
        "a int comment 5",
    ],
)
def test_text_that_lists_no_columns_is_refused(text):
    with pytest.raises(InvalidRequest):
        parse_ddl(text)


def test_an_error_names_the_line_and_what_was_expected():
    with pytest.raises(InvalidRequest, match=r"line 2, column \d+: .*expected a comma or the end, found name"):
        parse_ddl("id bigint\nname string")


@pytest.mark.parametrize(
    "text", ["a hugeint", "a interval", "a interval day to second, b int", "a enum('x', 'y')", "s struct<a: uhugeint>"]
)
def test_a_type_that_tables_do_not_have_is_refused_with_a_hint(text):
    with pytest.raises(Unsupported) as caught:
        parse_ddl(text)
    assert caught.value.hint
    assert caught.value.place in ("a", "s.a")


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(SchemaMismatch):
        parse_ddl("a int, a int")


def test_very_deep_text_is_refused():
    with pytest.raises(InvalidRequest, match="too deeply"):
        parse_ddl("a " + "array<" * 500 + "int" + ">" * 500)
