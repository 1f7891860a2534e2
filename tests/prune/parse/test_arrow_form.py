"""The serialised form is read exactly, whatever names and literals hold, and an unknown one keeps all blocks."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underlay.prune import And, Compare, Op, Opaque, Or, columns_of
from underlay.prune.parse import arrow_form
from underlay.prune.parse.arrow import from_arrow, named_columns, split_filter
from underlay.prune.parse.arrow_form import ArrowForm, UnknownForm

HOSTILE = [
    "a'\nend: 'and_kleene",
    "call",
    "end",
    "'",
    '"',
    "{}",
    "(x > 1)",
    "a.b",
    "FieldRef.Name(a)",
    "\0",
    "é, ü",
    "",
]
TEXTS = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(st.lists(TEXTS, min_size=2, max_size=2, unique=True), st.lists(TEXTS, min_size=2, max_size=2), TEXTS)
def test_names_and_literals_are_never_mistaken_for_something_else(names, literals, unused):
    schema = pa.schema([(name, pa.string()) for name in dict.fromkeys([*names, unused])])
    first, second = (Compare((name,), Op.EQ, literal) for name, literal in zip(names, literals, strict=True))
    expressions = [pc.field(name) == literal for name, literal in zip(names, literals, strict=True)]
    assert from_arrow(expressions[0] & expressions[1], schema) == And((first, second))
    assert from_arrow(expressions[0] | expressions[1], schema) == Or((first, second))
    assert named_columns(expressions[0] | expressions[1], schema) == set(names)
    unlike = pc.field(names[0]) == pc.field(names[1])
    predicate, rest = split_filter(unlike & expressions[1], schema)
    assert predicate == And((second,))
    assert rest.equals(unlike)


@given(st.lists(TEXTS, min_size=2, max_size=2), TEXTS)
def test_fields_of_structs_are_found_by_their_exact_names(path, literal):
    schema = pa.schema([(path[0], pa.struct([(path[1], pa.string()), (f"{path[1]}+", pa.string())]))])
    assert from_arrow(pc.field(*path) > literal, schema) == Compare(tuple(path), Op.GT, literal)


@given(st.binary(max_size=12))
def test_bytes_are_read_as_they_are(literal):
    schema = pa.schema([("b", pa.binary())])
    assert from_arrow(pc.field("b") == literal, schema) == Compare(("b",), Op.EQ, literal)


def entries_of(expression):
    return ArrowForm(expression)._entries


def test_every_part_can_be_made_again():
    parts = [pc.field("a") > 1, pc.starts_with(pc.field("b", "c"), "x"), pc.field("d")]
    whole = parts[0] & (parts[1] & parts[2])
    form = ArrowForm(whole)
    first, (second, third) = form.root.arguments[0], form.root.arguments[1].arguments
    assert all(form.expression(node).equals(part) for node, part in zip((first, second, third), parts, strict=True))
    assert form.expression(form.root).equals(whole)


GOOD = (pc.field("a") > 1) & pc.field("b", "c").is_null()


@pytest.mark.parametrize("number", range(len(entries_of(GOOD))))
@pytest.mark.parametrize("change", ["cut", "left out", "twice", "another key", "another value"])
def test_a_damaged_form_is_unknown_or_another_expression(number, change, monkeypatch):
    entries = entries_of(GOOD)
    key, value = entries[number]
    made = {
        "cut": entries[:number],
        "left out": entries[:number] + entries[number + 1 :],
        "twice": [*entries[:number], entries[number], *entries[number:]],
        "another key": [*entries[:number], (b"aggregate", value), *entries[number + 1 :]],
        "another value": [*entries[:number], (key, b"99"), *entries[number + 1 :]],
    }[change]
    monkeypatch.setattr(arrow_form, "_ordered_metadata", lambda schema: made)
    try:
        form = ArrowForm(GOOD)
    except UnknownForm:
        return
    assert form.root.end == len(made)


@pytest.mark.parametrize("reduced", ["a name", (print, ()), (print, (b"bytes",)), (None, (pa.py_buffer(b""),))])
def test_an_unknown_form_keeps_every_block_and_leaves_rows_to_arrow(reduced, monkeypatch):
    schema = pa.schema([("a", pa.int64()), ("z", pa.int64())])

    class Future:
        def __reduce__(self):
            return reduced

        def __str__(self):
            return "of the future"

        def equals(self, other):
            return self is other

    expression = Future()
    assert from_arrow(expression, schema) == Opaque("of the future", (("a",), ("z",)))
    assert columns_of(from_arrow(expression, schema)) == {("a",), ("z",)}
    assert split_filter(expression, schema).rest is expression
    assert named_columns(expression, schema) == {"a", "z"}


def test_bytes_that_are_no_ipc_file_are_an_unknown_form():
    class Damaged:
        def __reduce__(self):
            return print, (pa.py_buffer(b"ARROW1"),)

    with pytest.raises(UnknownForm):
        ArrowForm(Damaged())
