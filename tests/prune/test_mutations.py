"""The safety rules are load-bearing: with one rule taken out, the input of its trap gives a wrong answer."""

from __future__ import annotations

import importlib
import math
import struct

import numpy as np
import pytest

import underlay.prune.bounds as bounds_module
import underlay.prune.overlap as overlap_module
import underlay.prune.whole as whole_module
from underlay.prune import AmbiguousIntegers, Compare, Decimals, Floats, Integers, Op, Text, Times, Unit
from underlay.prune.bounds import KeyRanges
from underlay.prune.instant import parse_instant
from underlay.prune.octets import Octets
from underlay.prune.span import Selection, span_of

from .columns import C, bloom_of, column, kept

evaluate_module = importlib.import_module("underlay.prune.evaluate")
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

    monkeypatch.setattr(Octets, "select", select)


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

    monkeypatch.setattr(evaluate_module, "miss", miss)


SINGLE = struct.unpack("<f", struct.pack("<f", 0.1))[0]

# the rule taken out, a predicate, and a function that builds the bounds of one block that must be kept
MUTATIONS = {
    "t1": (forget_nan, "c > 2", lambda: column(Floats(64), (1.0, 1.0))),
    "t1_equal": (forget_nan, "c = 'nan'::double", lambda: column(Floats(64), (1.0, 1.0))),
    "t2": (forget_nan_bounds, "c < 5", lambda: column(Floats(64), (math.nan, 9.0))),
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
    "t28": (forget_trailing_nuls, Compare(C, Op.EQ, "a\0"), lambda: column(Text(), ("a\0", "a\0"))),
}


@pytest.mark.parametrize("trap", MUTATIONS)
def test_a_rule_taken_out_loses_rows(trap, monkeypatch):
    forget, predicate, build = MUTATIONS[trap]
    assert kept(predicate, build()) == [True]
    forget(monkeypatch)
    assert kept(predicate, build()) == [False]
