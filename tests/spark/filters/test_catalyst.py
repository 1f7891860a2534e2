"""Whole expressions against Spark itself are in test_relation; here is what JSON alone decides."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import pytest

from underlay.prune.predicates.instant import Instant
from underlay.prune.predicates.predicate import And, Compare, Constant, In, Not, Op, Opaque
from underlay.spark.filters.catalyst import translate
from underlay.spark.filters.catalyst_tree import Unknown, exact_value, read_value

PACKAGE = "org.apache.spark.sql.catalyst.expressions."


def node(kind: str, children: int = 0, **fields: object) -> dict[str, object]:
    return {"class": PACKAGE + kind, "num-children": children, **fields}


def column(name: str = "c", kind: object = "long") -> dict[str, object]:
    return node("AttributeReference", name=name, dataType=kind)


def literal(value: str | None, kind: str = "long") -> dict[str, object]:
    return node("Literal", value=value, dataType=kind)


def translated(*nodes: dict[str, object]):
    def refuse(place: int):
        raise AssertionError(f"node {place} was asked for")

    return translate(json.dumps(nodes), refuse)


def test_literal_on_the_left_turns_the_comparison_round():
    assert translated(node("LessThan", 2), literal("5"), column()) == Compare(("c",), Op.GT, 5)


def test_null_literal_is_null():
    assert translated(node("EqualTo", 2), column(), literal(None)) == Compare(("c",), Op.EQ, None)


def test_unknown_part_is_opaque_and_the_rest_is_not():
    found = translated(node("And", 2), node("Rand"), node("EqualTo", 2), column(), literal("1"))
    assert found == And((Opaque("Rand"), Compare(("c",), Op.EQ, 1)))


def test_negation_of_an_unknown_part_stays_opaque():
    assert translated(node("Not", 1), node("Rand")) == Not(Opaque("Rand"))


def test_cast_column_is_opaque():
    assert isinstance(translated(node("EqualTo", 2), node("Cast", 1), column(), literal("1")), Opaque)


def test_list_with_anything_but_literals_is_opaque():
    assert isinstance(translated(node("In", 3), column(), literal("1"), column("d")), Opaque)
    assert translated(node("In", 3), column(), literal("1"), literal(None)) == In(("c",), (1, None))


def test_class_of_another_package_is_opaque():
    given = [{"class": "my.EqualTo", "num-children": 2}, column(), literal("1")]
    assert translated(*given) == Opaque("my.EqualTo")


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False), (None, None)])
def test_bare_literal_is_a_constant(text: str | None, value: bool | None):
    assert translated(literal(text, "boolean")) == Constant(value)


def test_field_of_a_struct_is_found_by_its_number_not_by_the_users_spelling():
    kind = {"type": "struct", "fields": [{"name": "x", "type": "long"}, {"name": "Y", "type": "long"}]}
    path = (node("GetStructField", 1, ordinal=1, name="y"), column("s", kind))
    assert translated(node("EqualTo", 2), *path, literal("1")) == Compare(("s", "Y"), Op.EQ, 1)


def test_collated_text_is_opaque():
    given = (column("c", "string collate UTF8_LCASE"), literal("a", "string collate UTF8_LCASE"))
    assert isinstance(translated(node("EqualTo", 2), *given), Opaque)


def test_expression_that_is_very_deep_is_opaque():
    deep = [node("Not", 1)] * 5000
    assert isinstance(translated(*deep, column()), Opaque)


@pytest.mark.parametrize(
    "text", ["[]", "", "nonsense", '[{"class": "x"}]', '[{"class": "a", "num-children": 2}]', "{}"]
)
def test_json_of_another_form_is_opaque(text: str):
    assert isinstance(translate(text, lambda place: pytest.fail(str(place))), Opaque)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("byte", "-1", -1),
        ("long", "9223372036854775807", 2**63 - 1),
        ("double", "1.0E10", 1e10),
        ("double", "-Infinity", float("-inf")),
        ("float", "0.1", 0.10000000149011612),
        ("decimal(38,10)", "-0.0000000001", Decimal("-0.0000000001")),
        ("string", "null", "null"),
        ("boolean", "false", False),
    ],
)
def test_text_of_a_value_is_read_exactly(kind: str, text: str, value: object):
    assert read_value(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"), [("string", "a\ufffd"), ("interval", "1"), ("string collate X", "a"), ("variant", "1")]
)
def test_value_that_text_does_not_tell_is_unknown(kind: str, text: str):
    with pytest.raises(Unknown):
        read_value(kind, text)


def test_values_are_taken_as_catalyst_holds_them():
    assert exact_value("date", -1) == date(1969, 12, 31)
    assert exact_value("timestamp", -1) == Instant(-1000)
    assert exact_value("timestamp_ntz", 2**62) == Instant(2**62 * 1000)
    assert exact_value("binary", bytearray(b"\x00")) == b"\x00"


@pytest.mark.parametrize("days", [-719_163, 2_932_897])
def test_date_outside_pythons_years_is_unknown(days: int):
    with pytest.raises(Unknown):
        exact_value("date", days)
