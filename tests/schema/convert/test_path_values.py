from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from underlay.errors import InvalidRequest
from underlay.schema.convert.path_values import find_field, infer_type, path_scalar, path_values
from underlay.schema.types import Field, Scalar, TypeKind, parse_scalar


def test_folders_give_names_and_values():
    path = "/data/year=2024/zone=a%2Fb%20c/empty=/x=__HIVE_DEFAULT_PARTITION__/=5/k=v=w/n=1.parquet"
    assert path_values(path) == (("year", "2024"), ("zone", "a/b c"), ("empty", ""), ("x", None), ("k", "v=w"))
    assert path_values("part.parquet") == ()


@pytest.mark.parametrize("path", ["a=1/A=2/x", "a=%FF/x"])
def test_a_name_that_comes_twice_and_text_that_is_not_utf8_are_refused(path: str):
    with pytest.raises(InvalidRequest):
        path_values(path)


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("07", "int32", 7),
        ("-5", "int64", -5),
        ("1.50", "decimal(5, 2)", Decimal("1.50")),
        ("1e3", "float64", 1000.0),
        ("2024-02-29", "date", date(2024, 2, 29)),
        ("TRUE", "boolean", True),
        ("", "string", ""),
        (" a", "string", " a"),
        ("ab", "binary", b"ab"),
    ],
)
def test_values_have_the_type_of_their_column(text: str, type_: str, value: object):
    assert path_scalar(text, parse_scalar(type_)).as_py() == value


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("", "int64"),
        ("1_000", "int64"),
        (" 1", "int64"),
        ("1.5", "int64"),
        ("300", "int8"),
        ("-1", "uint8"),
        ("2024-02-30", "date"),
        ("2024-01-01 05:00:00", "date"),
        ("1.555", "decimal(5, 2)"),
        ("x", "float64"),
        ("yes", "boolean"),
        ("abc", "fixed(2)"),
    ],
)
def test_text_that_is_no_value_of_the_type_is_refused(text: str, type_: str):
    with pytest.raises(InvalidRequest):
        path_scalar(text, parse_scalar(type_))


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "-20", None, "0"], TypeKind.INT64),
        (["1", "02"], TypeKind.STRING),
        (["9223372036854775808"], TypeKind.STRING),
        (["2024-01-01", None], TypeKind.DATE),
        (["2024-01-01", "2024-13-01"], TypeKind.STRING),
        (["1", "2024-01-01"], TypeKind.STRING),
        ([None], TypeKind.STRING),
        ([""], TypeKind.STRING),
    ],
)
def test_a_new_column_is_of_whole_numbers_dates_or_text(texts: list[str | None], kind: TypeKind):
    assert infer_type(texts) == Scalar(kind)


def test_columns_are_found_in_any_case_unless_that_is_ambiguous():
    text = Scalar(TypeKind.STRING)
    fields = [Field(id=at, name=name, type=text) for at, name in enumerate(("Year", "zone", "Zone"))]
    found = [find_field(fields, name) for name in ("year", "zone", "Zone", "ZONE", "x")]
    assert [None if field is None else field.name for field in found] == ["Year", "zone", "Zone", None, None]
