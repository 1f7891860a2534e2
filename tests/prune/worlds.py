"""Random blocks, their statistics in every state of repair, and random predicates over them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from underlay.prune import And, Between, ColumnBounds, Compare, In, IsNotNull, IsNull, Op, Text

from .kinds import Kind
from .reference import Stats, is_nan

COLUMN = ("c",)


@dataclass(frozen=True)
class World:
    """Blocks of rows of one kind, the bounds handed to the evaluator, and the same as the reference's statistics."""

    kind: Kind
    blocks: list[list[Any]]
    stats: list[Stats]
    bounds: ColumnBounds
    predicate: And


def build_world(rng: random.Random, kind: Kind, *, loose: bool = False, damage: bool = True) -> World:
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
    return World(kind, blocks, stats, bounds, And(parts))


def build_predicate(rng: random.Random, kind: Kind, *, loose: bool):
    literals = (*kind.exact, *kind.loose) if loose else kind.exact
    match rng.randrange(8):
        case 0:
            return IsNull(COLUMN)
        case 1:
            return IsNotNull(COLUMN)
        case 2:
            return In(COLUMN, tuple(rng.choices((*literals, None), k=rng.randint(1, 6))))
        case 3:
            return Between(COLUMN, rng.choice(literals), rng.choice(literals))
        case _:
            return Compare(COLUMN, rng.choice(list(Op)), rng.choice(literals))


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
