"""NOT goes down to the leaves and changes no answer; the fuzz in test_differential compares answers."""

from __future__ import annotations

import pytest

from underlay.prune import FALSE, NULL, TRUE, And, Not, Opaque, Or, normalise
from underlay.prune.parse.sql import parse_where
from underlay.prune.predicates.like import LikeShape, Rest, shape_of
from underlay.prune.predicates.normalise import weaken


def normal(text):
    return str(normalise(parse_where(text, opaque=True)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NOT a = 1", "a <> 1"),
        ("NOT a <> 1", "a = 1"),
        ("NOT a < 1", "NOT a < 1"),
        ("NOT NOT a < 1", "a < 1"),
        ("NOT (a = 1 AND b = 2)", "a <> 1 OR b <> 2"),
        ("NOT (a = 1 OR (b < 2 AND NOT c IS NULL))", "a <> 1 AND (NOT b < 2 OR c IS NULL)"),
        ("NOT a IN (1, NULL)", "a NOT IN (1, NULL)"),
        ("NOT (NOT a IN (1))", "a IN (1)"),
        ("NOT a BETWEEN 1 AND 2", "NOT a BETWEEN 1 AND 2"),
        ("NOT a BETWEEN 1 AND NULL", "NOT a >= 1 OR NOT a <= NULL"),
        ("NOT isnan(a)", "NOT isnan(a)"),
        ("NOT (NOT isnan(a))", "isnan(a)"),
        ("NOT a IS DISTINCT FROM 1", "a IS NOT DISTINCT FROM 1"),
        ("NOT a LIKE 'x%'", "NOT (a LIKE 'x%')"),
        ("NOT TRUE", "FALSE"),
        ("NOT NULL", "NULL"),
        ("NOT abs(a) = 1", "NOT (ABS(a) = 1)"),
        ("(a = 1 AND b = 2) AND (c = 3)", "a = 1 AND b = 2 AND c = 3"),
        ("(a = 1 OR b = 2) OR c = 3 AND TRUE", "a = 1 OR b = 2 OR c = 3"),
    ],
)
def test_not_is_pushed_down(text, expected):
    assert normal(text) == expected


def test_empty_and_single_nodes_fold():
    assert normalise(And(())) == normalise(Not(Or(()))) == TRUE
    assert normalise(Or(())) == normalise(Not(And(()))) == FALSE
    assert normalise(And((Or((NULL,)),))) == NULL


def test_an_opaque_part_keeps_its_columns():
    assert normalise(Not(Opaque("f(a)", (("a",),)))) == Opaque("NOT (f(a))", (("a",),))


@pytest.mark.parametrize(
    ("where", "prefix", "rest"),
    [
        ("a LIKE ''", "", Rest.NOTHING),
        ("a LIKE 'x'", "x", Rest.NOTHING),
        ("a LIKE 'x%'", "x", Rest.ANYTHING),
        ("a LIKE 'x%%'", "x", Rest.ANYTHING),
        ("a LIKE '%'", "", Rest.ANYTHING),
        ("a LIKE 'x%y'", "x", Rest.PATTERN),
        ("a LIKE 'x_'", "x", Rest.PATTERN),
        (r"a LIKE 'x\\%'", "x", Rest.PATTERN),
        ("a LIKE 'x!%' ESCAPE '!'", "x%", Rest.NOTHING),
        ("a LIKE 'x!!%' ESCAPE '!'", "x!", Rest.ANYTHING),
        ("a LIKE 'x!_y%' ESCAPE '!'", "x_y", Rest.ANYTHING),
        ("a LIKE 'x%%' ESCAPE '%'", "x%", Rest.NOTHING),
    ],
)
def test_a_pattern_has_a_prefix_and_a_rest(where, prefix, rest):
    (like,) = parse_where(where).parts
    assert shape_of(like) == LikeShape(prefix, rest)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1 AND f(b)", "a = 1"),
        ("a = 1 OR f(b)", "TRUE"),
        ("(a = 1 AND f(b)) OR c = 2", "a = 1 OR c = 2"),
        ("NOT (a = 1 OR f(b))", "a <> 1"),
        ("NOT (a = 1 AND f(b))", "TRUE"),
        ("NOT f(b) AND c < 3 AND NOT (c < 2)", "c < 3 AND NOT c < 2"),
        ("f(b)", "TRUE"),
    ],
)
def test_a_weaker_predicate_has_no_opaque_part(text, expected):
    assert str(weaken(parse_where(text, opaque=True))) == expected
