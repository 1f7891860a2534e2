"""The safety rules are load-bearing: with one rule taken out, the input of its trap gives a wrong answer."""

from __future__ import annotations

import importlib
import math
import struct

import numpy as np
import pytest

import underlay.prune.blocks.column_bounds as bounds_module
import underlay.prune.blocks.overlap as overlap_module
import underlay.prune.domains.integers as whole_module
import underlay.prune.domains.selection as span_module
from tests.prune.columns import C, bloom_of, column, kept, must
from underlay.prune import (
    AmbiguousIntegers,
    Binary,
    Compare,
    Decimals,
    Floats,
    In,
    Integers,
    NotIn,
    Op,
    StartsWith,
    Text,
    Times,
    Unit,
)
from underlay.prune.blocks.column_bounds import KeyRanges
from underlay.prune.domains.byte_strings import ByteStrings
from underlay.prune.domains.selection import Selection, span_of
from underlay.prune.predicates.instant import parse_instant
from underlay.prune.predicates.like import LikeShape, Rest

judge_module = importlib.import_module("underlay.prune.blocks.judge")
finding_module = importlib.import_module("underlay.prune.blocks.finding")
choice_module = importlib.import_module("underlay.prune.blocks.leaf_selection")
NEGATIVE_ZERO = struct.pack("<d", -0.0)


def forget_nan(monkeypatch):
    true_select = Floats.select
    monkeypatch.setattr(Floats, "select", lambda self, op, literal: Selection(true_select(self, op, literal).spans))


def forget_the_other_zero(monkeypatch):
    true_bytes = Floats.plain_bytes
    monkeypatch.setattr(Floats, "plain_bytes", lambda self, literal: true_bytes(self, literal)[:1])


def forget_nan_bounds(monkeypatch):
    def keys(self, bounds):
        return np.asarray(bounds, dtype=np.float64), np.ones(len(bounds), dtype=bool)

    monkeypatch.setattr(Floats, "keys", keys)


def forget_inverted_bounds(monkeypatch):
    def of(domain, minimum, maximum, given):
        low, high = domain.keys(minimum)[0], domain.keys(maximum)[0]
        return KeyRanges(domain=domain, minimum=low, maximum=high, has_minimum=given[0], has_maximum=given[1])

    monkeypatch.setattr(bounds_module.KeyRanges, "of", staticmethod(of))


def forget_the_unsigned_reading(monkeypatch):
    true_ranges = bounds_module._ranges
    monkeypatch.setattr(bounds_module, "_ranges", lambda *args: true_ranges(*args)[:1])


def forget_float_rounding(monkeypatch):
    monkeypatch.setattr(Floats, "_readings", lambda self, value, scale: (float(value), float(value)))


def forget_double_casts(monkeypatch):
    monkeypatch.setattr(whole_module, "double_readings", lambda value: (value, value))


def forget_text_rounding(monkeypatch):
    true_read = Times.read
    monkeypatch.setattr(Times, "read", lambda self, literal: true_read(self, parse_instant(literal)))


def forget_missing_null_counts(monkeypatch):
    def counts(name, counts, mask, block_count):
        return np.asarray(np.zeros(block_count) if counts is None else counts, dtype=np.int64)

    monkeypatch.setattr(bounds_module, "_counts", counts)


def forget_trailing_nuls(monkeypatch):
    def select(self, op, literal):
        point = self.encode(literal).rstrip(b"\0")
        return Selection((span_of(op, point, point),))

    monkeypatch.setattr(ByteStrings, "select", select)


def forget_missing_bounds(monkeypatch):
    true_miss = overlap_module.miss

    def miss(ranges, selection, may_hold_nan):
        everywhere = np.ones(len(ranges.minimum), dtype=bool)
        full = KeyRanges(
            domain=ranges.domain,
            minimum=ranges.minimum,
            maximum=ranges.maximum,
            has_minimum=everywhere,
            has_maximum=everywhere,
        )
        return true_miss(full, selection, may_hold_nan)

    monkeypatch.setattr(judge_module, "miss", miss)
    monkeypatch.setattr(finding_module, "miss", miss)


def forget_nan_in_negations(monkeypatch):
    monkeypatch.setattr(choice_module, "_with_nan", lambda selection: selection)


def forget_nan_literals(monkeypatch):
    monkeypatch.setattr(choice_module, "is_nan_literal", lambda value: False)


def forget_nulls(monkeypatch):
    true_choose = judge_module.choose

    def choose(leaf, domain):
        choice = true_choose(leaf, domain)
        return choice_module.LeafSelection(choice.hits, choice.find_misses, null_hits=False, null_misses=False)

    monkeypatch.setattr(judge_module, "choose", choose)


def forget_rounding_of_points(monkeypatch):
    monkeypatch.setattr(Floats, "exact_key", lambda self, literal: float(np.float32(float(literal))))
    monkeypatch.setattr(Integers, "exact_key", lambda self, literal: int(literal))


def forget_that_lists_share_a_type(monkeypatch):
    monkeypatch.setattr(choice_module, "as_doubles", lambda values: values)


def forget_null_in_lists(monkeypatch):
    true_choose = judge_module.choose

    def choose(leaf, domain):
        return true_choose(NotIn(leaf.column, tuple(v for v in leaf.values if v is not None)), domain)

    monkeypatch.setattr(judge_module, "choose", choose)


def forget_the_byte_order(monkeypatch):
    monkeypatch.setattr(span_module, "successor", lambda prefix: prefix[:-1] + bytes([(prefix[-1] + 1) % 256]))


def forget_escapes(monkeypatch):
    monkeypatch.setattr(
        choice_module, "shape_of", lambda like: LikeShape(like.pattern.partition("%")[0], Rest.ANYTHING)
    )


SINGLE = struct.unpack("<f", struct.pack("<f", 0.1))[0]

# the rule taken out, a predicate, and a function that builds the bounds of one block that must be kept
MUTATIONS = {
    "t1": (forget_nan, "c > 2", lambda: column(Floats(64), (1.0, 1.0))),
    "t1_equal": (forget_nan, "c = 'nan'::double", lambda: column(Floats(64), (1.0, 1.0))),
    "t2": (forget_nan_bounds, "c IN (1, 2, 3, 4, 5)", lambda: column(Floats(64), (math.nan, 9.0))),
    "t6": (forget_the_other_zero, "c = 0", lambda: column(Floats(64), (None, None), bloom=bloom_of({NEGATIVE_ZERO}))),
    "t8": (forget_float_rounding, "c = 0.1", lambda: column(Floats(32), (SINGLE, SINGLE))),
    "t8_double": (
        forget_double_casts,
        Compare(C, Op.EQ, 2.0**53),
        lambda: column(Integers(64), (2**53 + 1, 2**53 + 1)),
    ),
    "t8_text": (forget_text_rounding, "c = '2020-01-01 12:00'", lambda: column(Times(Unit.DAY, 32), (18262, 18262))),
    "t21": (forget_the_unsigned_reading, "c > 3000000000", lambda: column(AmbiguousIntegers(32), (-(2**31) + 5, -1))),
    "t23": (forget_inverted_bounds, "c < 500", lambda: column(Integers(64), (900, 100))),
    "t24": (forget_missing_null_counts, "c IS NULL", lambda: column(Integers(64), (1, 5))),
    "t26": (forget_missing_bounds, "c = 2", lambda: column(Decimals(20, 2, None), (None, None))),
    "t1_negated": (forget_nan_in_negations, "NOT c > 2", lambda: column(Floats(64), (5.0, 5.0))),
    "t24_null_safe": (
        forget_nulls,
        "c IS DISTINCT FROM 5",
        lambda: column(Integers(64), (5, 5), null_count=[1], value_count=[2]),
    ),
    "t30": (forget_the_byte_order, StartsWith(C, b"\xff"), lambda: column(Binary(), (b"\xff", b"\xff\xff"))),
    "t30_escape": (forget_escapes, "c LIKE 'a!_%' ESCAPE '!'", lambda: column(Text(), ("a_", "a_"))),
    "t28": (forget_trailing_nuls, Compare(C, Op.EQ, "a\0"), lambda: column(Text(), ("a\0", "a\0"))),
}


KNOWN = {"null_count": [0], "value_count": [2]}

# the rule taken out, a predicate, and a function that builds the bounds of one block that must not match in full
FULL_MUTATIONS = {
    "t1": (forget_nan_in_negations, "c > 0", lambda: column(Floats(64), (1.0, 1.0), **KNOWN)),
    "t1_unequal": (forget_nan_in_negations, "c <> 2", lambda: column(Floats(64), (1.0, 1.0), **KNOWN)),
    "t1_list": (forget_nan_in_negations, "c NOT IN (2)", lambda: column(Floats(64), (1.0, 1.0), **KNOWN)),
    "t1_negated": (forget_nan_in_negations, "NOT c < 0", lambda: column(Floats(64), (1.0, 1.0), **KNOWN)),
    "t1_literal": (
        forget_nan_literals,
        "c < 'nan'::double",
        lambda: column(Floats(64), (1.0, 1.0), may_hold_nan=False, **KNOWN),
    ),
    "t8": (
        forget_rounding_of_points,
        "c = 0.1",
        lambda: column(Floats(32), (SINGLE, SINGLE), may_hold_nan=False, **KNOWN),
    ),
    "t8_text": (forget_rounding_of_points, In(C, (2.0**53,)), lambda: column(Integers(64), (2**53, 2**53), **KNOWN)),
    "t8_list": (
        forget_that_lists_share_a_type,
        NotIn(C, (7.0, 2**63 - 2)),
        lambda: column(Integers(64), (2**63 - 1, 2**63 - 1), **KNOWN),
    ),
    "t21": (forget_the_unsigned_reading, "c < 0", lambda: column(AmbiguousIntegers(32), (-9, -1), **KNOWN)),
    "t24": (forget_nulls, "c = 5", lambda: column(Integers(64), (5, 5), null_count=[1], value_count=[2])),
    "t24_unknown": (forget_missing_null_counts, "c = 5", lambda: column(Integers(64), (5, 5))),
    "t24_list": (forget_null_in_lists, "c NOT IN (6, NULL)", lambda: column(Integers(64), (5, 5), **KNOWN)),
    "t26": (forget_missing_bounds, "c >= -1", lambda: column(Decimals(20, 2, None), (None, None), **KNOWN)),
    "t30": (forget_escapes, "c LIKE 'a_%'", lambda: column(Text(), ("a_", "a_b"), **KNOWN)),
}


@pytest.mark.parametrize("trap", FULL_MUTATIONS)
def test_a_rule_taken_out_counts_rows_that_do_not_match(trap, monkeypatch):
    forget, predicate, build = FULL_MUTATIONS[trap]
    assert must(predicate, build()) == [False]
    forget(monkeypatch)
    assert must(predicate, build()) == [True]


@pytest.mark.parametrize("trap", MUTATIONS)
def test_a_rule_taken_out_loses_rows(trap, monkeypatch):
    forget, predicate, build = MUTATIONS[trap]
    assert kept(predicate, build()) == [True]
    forget(monkeypatch)
    assert kept(predicate, build()) == [False]
