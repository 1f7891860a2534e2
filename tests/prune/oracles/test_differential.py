"""Fast equals slow, and nothing that matches is ever dropped: random types, blocks, statistics and predicates."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gate import costly, sized
from tests.prune.oracles.kinds import BY_NAME, KINDS
from tests.prune.oracles.reference import (
    DUCKDB,
    Engine,
    block_may_match,
    block_must_match,
    is_nan,
    row_always_matches,
    row_matches,
    truth,
)
from tests.prune.oracles.worlds import COLUMN, build_world
from underlay.prune import AmbiguousIntegers, ColumnBounds, evaluate, normalise

kinds = pytest.mark.parametrize("kind", KINDS, ids=repr)
seeds = st.integers(min_value=0, max_value=2**64)


def judge(world):
    return evaluate(world.predicate, {COLUMN: world.bounds}, block_count=len(world.blocks))


def row_key(kind, value):
    return value if value is None or is_nan(value) else kind.key(value)


@kinds
@given(seed=seeds, loose=st.booleans(), tree=st.booleans())
def test_dropped_and_full_blocks_are_what_every_engine_finds(kind, seed, loose, tree):
    world = build_world(random.Random(seed), kind, loose=loose, tree=tree)
    verdict = judge(world)
    for block, is_kept, is_full in zip(world.blocks, verdict.kept, verdict.must, strict=True):
        for value in {repr(v): row_key(kind, v) for v in block}.values():
            assert is_kept or not row_matches(world.predicate, value, kind.readings), (str(world.predicate), block)
            assert not is_full or row_always_matches(world.predicate, value, kind.readings), str(world.predicate)


@kinds
@given(seed=seeds)
def test_the_evaluator_agrees_with_the_reference_on_every_block(kind, seed):
    world = build_world(random.Random(seed), kind)
    verdict = judge(world)
    limits = {"lowest": kind.lowest, "highest": kind.highest, "step": kind.step}
    parts = world.predicate.parts
    for index, stats in enumerate(world.stats):
        may = all(block_may_match(part, stats, kind.readings, **limits) for part in parts)
        assert verdict.kept[index] == may, (str(world.predicate), stats, verdict.reason(index))
        must = may and all(block_must_match(part, stats, kind.readings, **limits) for part in parts)
        assert verdict.must[index] == must, (str(world.predicate), stats)


@kinds
@costly
@given(seed=seeds)
def test_a_normalised_predicate_answers_every_row_alike(kind, seed):
    world = build_world(random.Random(seed), kind, loose=True, tree=True)
    normal = normalise(world.predicate)
    for value in [None, *(row_key(kind, v) for v in kind.values)]:
        for engine in (DUCKDB, Engine(nan_test_of_null=False)):
            answers = [truth(p, value, kind.readings, engine) for p in (world.predicate, normal)]
            assert answers[0] == answers[1], (str(world.predicate), str(normal), value)


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
    for block, is_kept, is_full in zip(world.blocks, verdict.kept, verdict.must, strict=True):
        rows = [row_key(kind, value) for value in block]
        assert is_kept or not any(row_matches(world.predicate, row, kind.readings) for row in rows)
        assert not is_full or all(row_always_matches(world.predicate, row, kind.readings) for row in rows)


@kinds
def test_a_fair_share_of_blocks_is_dropped_and_of_others_known_in_full(kind):
    rng = random.Random(20240131)
    worlds = [build_world(rng, kind, loose=True, damage=False) for _ in range(sized(50, 150))]
    dropped = sum(int((~judge(world).kept).sum()) for world in worlds)
    full = sum(int(judge(world).must.sum()) for world in worlds)
    blocks = sum(len(world.blocks) for world in worlds)
    assert dropped / blocks > 0.2
    assert full / blocks > 0.05


@kinds
@costly
@given(seed=seeds)
def test_every_dropped_block_has_a_reason_and_is_counted(kind, seed):
    world = build_world(random.Random(seed), kind, loose=True, tree=True)
    verdict = judge(world)
    assert sum(verdict.counts().values()) == int((~verdict.kept).sum())
    for index, is_kept in enumerate(verdict.kept):
        assert verdict.reason(index).startswith("kept") == bool(is_kept)
        assert (verdict.parts[index] == -1) == bool(is_kept)
