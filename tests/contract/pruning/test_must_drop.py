"""Pruning prunes: for each type and form of condition a table of which blocks must be dropped."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from tests.contract.pruning.kinds import FLOATING, IN_SECONDS, KINDS, TEXTUAL
from tests.contract.pruning.oracle import answer
from tests.contract.pruning.traps import own, registered
from tests.parquet.footers import written
from underlay import col
from underlay.index.segment.packed import MAX_BOUND_BYTES

column = col("c")
FORMS = {
    "=": lambda low, high: column == low,
    "<": lambda low, high: column < high,
    "between": lambda low, high: column.between(low, low),
    "in": lambda low, high: column.is_in([low]),
    "not": lambda low, high: ~(column >= high),
    "<>": lambda low, high: column != low,
    "is null": lambda low, high: column.is_null(),
    "is not null": lambda low, high: column.is_not_null(),
    "starts with": lambda low, high: column.starts_with(high),
    "like": lambda low, high: column.like(f"{high}%"),
    "is nan": lambda low, high: column.is_nan(),
}
NULL_FORMS = ("is null", "is not null")
NAN_FORMS = ("not", "<>", "is nan")
"""Forms that NaN may match: they drop a block of floats only where it is known to hold none."""


def forms_of(name):
    for form in FORMS:
        if form == "starts with" and name not in TEXTUAL:
            continue
        if form == "like" and name != "string":
            continue
        if form == "is nan" and name not in FLOATING:
            continue
        if not KINDS[name].is_ordered and form not in NULL_FORMS:
            continue
        yield form


def ends(name):
    """Two literals that are values of the kind too, the lesser first, and the values."""
    kind = KINDS[name]
    by_key = {kind.value_key(value): value for value in kind.values}
    pairs = {key: literal for literal in kind.literals if not is_odd(key := kind.key(literal)) and key in by_key}
    low, high = min(pairs), max(pairs)
    return pairs[low], pairs[high], by_key[low], by_key[high]


def is_odd(key):
    """Infinite, NaN, without a prefix, or so long that its bound is cut and proves less."""
    if isinstance(key, bytes):
        return not 0 < len(key) <= MAX_BOUND_BYTES
    return isinstance(key, float) and not math.isfinite(key)


def rows_of(name):
    """A block of the low value, a block of the high one, a block of nulls."""
    _, _, low, high = ends(name)
    values = [low, low, high, high, None, None]
    return values, pa.table({"c": KINDS[name].array(values), "n": range(6)})


def check(table, name, form):
    low, high, _, _ = ends(name)
    where = FORMS[form](low, high)
    values, kind = rows_of(name)[0], KINDS[name]
    keys = [{"c": None if value is None else kind.value_key(value)} for value in values]
    expected = [number for number, row in enumerate(keys) if answer(where, row, {"c": kind}) is True]
    assert table.scan(["n"], where).to_arrow()["n"].to_pylist() == expected, where
    plan = table.plan(where=where)
    assert plan.total.blocks == 3, where
    return plan.kept.blocks, len(expected) // 2


@pytest.mark.parametrize("name", KINDS)
def test_our_files_keep_only_the_blocks_that_match(name):
    table = own(rows_of(name)[1])
    found = {form: check(table, name, form) for form in forms_of(name)}
    assert {form: counts for form, counts in found.items() if counts[0] != counts[1]} == {}, "(kept, wanted)"


@pytest.mark.parametrize("name", [name for name in KINDS if name not in IN_SECONDS])
def test_files_of_others_drop_what_their_statistics_rule_out(name):
    data = rows_of(name)[1]
    table = registered(data.schema, written(data, row_group_size=2))
    for form in forms_of(name):
        kept, wanted = check(table, name, form)
        if name in FLOATING and form in NAN_FORMS:
            assert wanted <= kept < 3, form
        else:
            assert kept == wanted, form
