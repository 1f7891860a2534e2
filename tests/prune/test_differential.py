"""Fast equals slow, and nothing that matches is ever dropped: random types, blocks, statistics and predicates."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from underlay.prune import AmbiguousIntegers, ColumnBounds, evaluate

from .kinds import BY_NAME, KINDS
from .reference import block_may_match, is_nan, row_matches
from .worlds import COLUMN, build_world

kinds = pytest.mark.parametrize("kind", KINDS, ids=repr)
seeds = st.integers(min_value=0, max_value=2**64)


def judge(world):
    return evaluate(world.predicate, {COLUMN: world.bounds}, block_count=len(world.blocks))


def row_key(kind, value):
    return value if value is None or is_nan(value) else kind.key(value)


@kinds
@settings(max_examples=60, deadline=None)
@given(seed=seeds, loose=st.booleans())
def test_a_dropped_block_holds_no_matching_row_in_any_engine(kind, seed, loose):
    world = build_world(random.Random(seed), kind, loose=loose)
    verdict = judge(world)
    for block, is_kept in zip(world.blocks, verdict.kept, strict=True):
        for value in block:
            for nan_is_greatest in (True, False):
                matches = row_matches(
                    world.predicate, row_key(kind, value), kind.readings, nan_is_greatest=nan_is_greatest
                )
                assert is_kept or not matches, (str(world.predicate), block)


@kinds
@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_the_evaluator_agrees_with_the_reference_on_every_block(kind, seed):
    world = build_world(random.Random(seed), kind)
    verdict = judge(world)
    for index, stats in enumerate(world.stats):
        expected = all(
            block_may_match(part, stats, kind.readings, lowest=kind.lowest, highest=kind.highest, step=kind.step)
            for part in world.predicate.parts
        )
        assert verdict.kept[index] == expected, (str(world.predicate), stats, verdict.reason(index))


@settings(max_examples=200, deadline=None)
@given(seed=seeds, bits=st.sampled_from([32, 64]), signed=st.booleans())
def test_integers_of_unknown_sign_lose_no_row_whichever_they_were(seed, bits, signed):
    kind = BY_NAME[f"{'' if signed else 'u'}int{bits}"]
    world = build_world(random.Random(seed), kind, loose=True, damage=False)
    (known,) = world.bounds.ranges
    raw = [keys.astype(f"uint{bits}").view(f"int{bits}") for keys in (known.minimum, known.maximum)]
    bounds = ColumnBounds.of(
        AmbiguousIntegers(bits),
        block_count=len(world.blocks),
        minimum=raw[0],
        maximum=raw[1],
        has_minimum=known.has_minimum,
        has_maximum=known.has_maximum,
    )
    verdict = evaluate(world.predicate, {COLUMN: bounds}, block_count=len(world.blocks))
    for block, is_kept in zip(world.blocks, verdict.kept, strict=True):
        rows = [row_key(kind, value) for value in block]
        assert is_kept or not any(row_matches(world.predicate, row, kind.readings) for row in rows)


@kinds
def test_a_fair_share_of_blocks_is_dropped(kind):
    rng = random.Random(20240131)
    worlds = [build_world(rng, kind, loose=True, damage=False) for _ in range(150)]
    dropped = sum(int((~judge(world).kept).sum()) for world in worlds)
    assert dropped / sum(len(world.blocks) for world in worlds) > 0.2


@kinds
@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_every_dropped_block_has_a_reason_and_is_counted(kind, seed):
    world = build_world(random.Random(seed), kind, loose=True)
    verdict = judge(world)
    assert sum(verdict.counts().values()) == int((~verdict.kept).sum())
    for index, is_kept in enumerate(verdict.kept):
        assert verdict.reason(index).startswith("kept") == bool(is_kept)
        assert (verdict.parts[index] == -1) == bool(is_kept)
