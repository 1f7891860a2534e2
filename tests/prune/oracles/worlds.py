"""Random blocks, their statistics in every state of repair, and random predicates over them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.prune.oracles.kinds import Kind
from tests.prune.oracles.reference import Stats, is_nan
from underlay.prune import (
    And,
    Between,
    Binary,
    ColumnBounds,
    Compare,
    Constant,
    Decimals,
    FixedBinary,
    Floats,
    In,
    Integers,
    IsDistinct,
    IsNan,
    IsNotDistinct,
    IsNotNan,
    IsNotNull,
    IsNull,
    Like,
    Not,
    NotIn,
    Op,
    Or,
    Predicate,
    StartsWith,
    Text,
)

COLUMN = ("c",)


@dataclass(frozen=True)
class World:
    """Blocks of rows of one kind, the bounds handed to the evaluator, and the same as the reference's statistics."""

    kind: Kind
    blocks: list[list[Any]]
    stats: list[Stats]
    bounds: ColumnBounds
    predicate: Predicate


def build_world(
    rng: random.Random, kind: Kind, *, loose: bool = False, damage: bool = True, tree: bool = False
) -> World:
    blocks = [_build_block(rng, kind) for _ in range(rng.randint(1, 12))]
    pairs = [_bound_pair(rng, kind, block, damage) for block in blocks]
    nulls = [_null_count(rng, block, damage) for block in blocks]
    may_hold_nan = [kind.may_hold_nan and (any(is_nan(v) for v in b) or rng.random() < 0.5) for b in blocks]
    minimum, maximum = [low for low, _ in pairs], [high for _, high in pairs]
    bounds = ColumnBounds.of(
        kind.domain,
        block_count=len(blocks),
        minimum=kind.array(minimum),
        maximum=kind.array(maximum),
        has_minimum=[v is not None for v in minimum],
        has_maximum=[v is not None for v in maximum],
        null_count=[0 if n is None else n for n in nulls],
        has_null_count=[n is not None for n in nulls],
        value_count=[len(block) for block in blocks],
        may_hold_nan=may_hold_nan,
    )
    stats = [
        Stats(_key(kind, low), _key(kind, high), n, len(block), nan)
        for (low, high), n, block, nan in zip(pairs, nulls, blocks, may_hold_nan, strict=True)
    ]
    parts = tuple(build_predicate(rng, kind, loose=loose) for _ in range(rng.choice((1, 1, 1, 2))))
    predicate = build_tree(rng, kind, loose=loose) if tree else And(parts)
    return World(kind, blocks, stats, bounds, predicate)


def build_predicate(rng: random.Random, kind: Kind, *, loose: bool):
    """Any leaf that the kind can be asked, sometimes under NOT."""
    literals = (*kind.exact, *kind.loose) if loose else kind.exact
    one = rng.choice(literals)
    alike = [literal for literal in literals if isinstance(literal, float) == isinstance(one, float)]
    some = tuple(rng.choices((*alike, None) if rng.random() < 0.3 else alike, k=rng.randint(1, 6)))
    leaves = [
        IsNull(COLUMN),
        IsNotNull(COLUMN),
        In(COLUMN, some),
        NotIn(COLUMN, some),
        Between(COLUMN, one, rng.choice(alike)),
        IsDistinct(COLUMN, rng.choice((one, None))),
        IsNotDistinct(COLUMN, rng.choice((one, None))),
        *(Compare(COLUMN, op, one) for op in Op),
    ]
    if isinstance(kind.domain, Integers | Floats | Decimals):
        leaves += [IsNan(COLUMN), IsNotNan(COLUMN)]
    if isinstance(kind.domain, Text | Binary) and not isinstance(kind.domain, FixedBinary):
        leaves += [StartsWith(COLUMN, one[: rng.randint(0, 2)]), StartsWith(COLUMN, one)]
    leaf = rng.choice(leaves)
    return Not(leaf) if isinstance(leaf, Compare | StartsWith) and rng.random() < 0.3 else leaf


PATTERNS = ("a%", "%", "", "_", "a_", "%b", "a!%%", "b%b", "\U0010ffff%", "!_%", "é", "%\0")


def build_tree(rng: random.Random, kind: Kind, *, loose: bool, depth: int = 4):
    """AND, OR and NOT over leaves, LIKE and constants among them."""
    choice = rng.random() if depth else 1
    if choice < 0.25:
        return Not(build_tree(rng, kind, loose=loose, depth=depth - 1))
    if choice < 0.6:
        parts = (build_tree(rng, kind, loose=loose, depth=depth - 1) for _ in range(rng.randint(1, 3)))
        return rng.choice((And, Or))(tuple(parts))
    if isinstance(kind.domain, Text) and rng.random() < 0.2:
        return Like(COLUMN, rng.choice(PATTERNS), "!")
    if rng.random() < 0.05:
        return Constant(rng.choice((True, False, None)))
    return build_predicate(rng, kind, loose=loose)


def _build_block(rng: random.Random, kind: Kind) -> list[Any]:
    """Few distinct values, so that ranges are narrow enough to be missed; sometimes nothing but nulls."""
    values = rng.choices(kind.values, k=rng.randint(1, 3))
    return rng.choices([*values, None] if rng.random() < 0.6 else values, k=rng.randint(1, 6))


def _bound_pair(rng: random.Random, kind: Kind, block: list[Any], damage: bool) -> tuple[Any, Any]:
    present = [v for v in block if v is not None and not is_nan(v)]
    if not present:
        return None, None
    low, high = min(present, key=kind.key), max(present, key=kind.key)
    if isinstance(kind.domain, Text) and rng.random() < 0.5:
        return _truncated(low), _rounded_up(high)
    if damage and rng.random() < 0.15 and kind.key(low) != kind.key(high):
        return high, low
    if damage and kind.may_hold_nan and rng.random() < 0.15:
        return rng.choice(((float("nan"), high), (low, float("nan"))))
    return (None if rng.random() < 0.1 else low), (None if rng.random() < 0.1 else high)


def _truncated(text: str) -> str:
    return text[:2]


def _rounded_up(text: str) -> str | None:
    """The least text of at most two characters above every text with the same start; None when there is none."""
    if len(text) <= 2:
        return text
    for end in (2, 1):
        following = ord(text[end - 1]) + 1
        if following <= 0x10FFFF:
            return text[: end - 1] + chr(0xE000 if 0xD800 <= following < 0xE000 else following)
    return None


def _null_count(rng: random.Random, block: list[Any], damage: bool) -> int | None:
    true = sum(v is None for v in block)
    if damage and rng.random() < 0.1:
        return rng.choice((-1, len(block) + 1, None))
    return None if rng.random() < 0.1 else true


def _key(kind: Kind, value: Any) -> Any:
    if value is None or is_nan(value):
        return value
    return kind.key(value)
