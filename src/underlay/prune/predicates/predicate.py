"""Predicates over bare columns: what a caller asks, before it is bound to any column's type.

A tree of And, Or and Not over leaves, each with SQL's three answers: true, false, and null, which does not match.
Every predicate but one that holds an Opaque part prints as SQL that `parse_where` reads back to the same question.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, NoReturn

from underlay.prune.predicates.operand import ColumnPath, Operand, format_operand, write_column


class Op(Enum):
    """How a column is compared with one literal."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


class _Condition:
    """What every node shares: `&`, `|` and `~` build bigger predicates."""

    __slots__ = ()

    def __and__(self, other: Predicate) -> And:
        return And((*_operands(And, self), *_operands(And, other)))

    def __or__(self, other: Predicate) -> Or:
        return Or((*_operands(Or, self), *_operands(Or, other)))

    def __invert__(self) -> Not:
        return Not(_checked(self))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a predicate has no truth value: write & | ~ in place of and, or, not, with parentheses around each"
            " comparison, and .between(low, high) in place of low <= column <= high"
        )


@dataclass(frozen=True, slots=True)
class Compare(_Condition):
    """`column op value`."""

    column: ColumnPath
    op: Op
    value: Operand

    def __str__(self) -> str:
        return f"{write_column(self.column)} {self.op.value} {format_operand(self.value)}"


@dataclass(frozen=True, slots=True)
class _ValueTest(_Condition):
    column: ColumnPath
    value: Operand

    _words: ClassVar[str]

    def __str__(self) -> str:
        return f"{write_column(self.column)} {self._words} {format_operand(self.value)}"


class IsNotDistinct(_ValueTest):
    """`column IS NOT DISTINCT FROM value`: equal, where null equals null. Never null itself."""

    __slots__ = ()
    _words = "IS NOT DISTINCT FROM"


class IsDistinct(_ValueTest):
    """`column IS DISTINCT FROM value`."""

    __slots__ = ()
    _words = "IS DISTINCT FROM"


@dataclass(frozen=True, slots=True)
class _ListTest(_Condition):
    column: ColumnPath
    values: tuple[Operand, ...]

    _words: ClassVar[str]
    _when_empty: ClassVar[str]

    def __str__(self) -> str:
        listed = ", ".join(map(format_operand, self.values))
        return f"{write_column(self.column)} {self._words} ({listed})" if self.values else self._when_empty


class In(_ListTest):
    """`column IN (values)`. With no values it is false for every row."""

    __slots__ = ()
    _words, _when_empty = "IN", "FALSE"


class NotIn(_ListTest):
    """`column NOT IN (values)`. Never true when one value is NULL; with no values it is true for every row."""

    __slots__ = ()
    _words, _when_empty = "NOT IN", "TRUE"


@dataclass(frozen=True, slots=True)
class Between(_Condition):
    """`column >= low AND column <= high`: never true when low is above high, as in SQL and unlike QuestDB."""

    column: ColumnPath
    low: Operand
    high: Operand

    def __str__(self) -> str:
        low, high = format_operand(self.low), format_operand(self.high)
        return f"{write_column(self.column)} BETWEEN {low} AND {high}"


@dataclass(frozen=True, slots=True)
class _BareTest(_Condition):
    column: ColumnPath

    _form: ClassVar[str]

    def __str__(self) -> str:
        return self._form.format(write_column(self.column))


class IsNull(_BareTest):
    """`column IS NULL`."""

    __slots__ = ()
    _form = "{} IS NULL"


class IsNotNull(_BareTest):
    """`column IS NOT NULL`."""

    __slots__ = ()
    _form = "{} IS NOT NULL"


class IsNan(_BareTest):
    """`isnan(column)`: null for a null, as in DuckDB and Arrow. Spark says false; the pruner is safe for both."""

    __slots__ = ()
    _form = "isnan({})"


class IsNotNan(_BareTest):
    """`NOT isnan(column)`."""

    __slots__ = ()
    _form = "NOT isnan({})"


@dataclass(frozen=True, slots=True)
class StartsWith(_Condition):
    """`starts_with(column, prefix)`, byte by byte."""

    column: ColumnPath
    prefix: str | bytes

    def __str__(self) -> str:
        return f"starts_with({write_column(self.column)}, {format_operand(self.prefix)})"


@dataclass(frozen=True, slots=True)
class Like(_Condition):
    """`column LIKE pattern [ESCAPE escape]`: % is any text, _ one character.

    Without `escape` a backslash is itself in DuckDB and an escape in Spark: pruning allows for both.
    """

    column: ColumnPath
    pattern: str
    escape: str | None = None

    def __str__(self) -> str:
        escape = "" if self.escape is None else f" ESCAPE {format_operand(self.escape)}"
        return f"{write_column(self.column)} LIKE {format_operand(self.pattern)}{escape}"


@dataclass(frozen=True, slots=True)
class Constant(_Condition):
    """TRUE, FALSE or NULL for every row."""

    value: bool | None

    def __str__(self) -> str:
        return format_operand(self.value)


TRUE = Constant(True)
FALSE = Constant(False)
NULL = Constant(None)


@dataclass(frozen=True, slots=True)
class Opaque(_Condition):
    """Something that cannot be translated: it keeps every block and proves none. `columns` are those it names."""

    text: str
    columns: tuple[ColumnPath, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Not(_Condition):
    """False where `part` is true, true where it is false, null where it is null."""

    part: Predicate

    def __str__(self) -> str:
        is_simple = isinstance(self.part, Compare | In | Between | IsNull | IsNan | StartsWith)
        return f"NOT {self.part}" if is_simple else f"NOT ({self.part})"


@dataclass(frozen=True, slots=True)
class And(_Condition):
    """All of `parts`. With no parts it is true."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({p})" if isinstance(p, And | Or | Opaque) else str(p) for p in self.parts) or "TRUE"


@dataclass(frozen=True, slots=True)
class Or(_Condition):
    """Any of `parts`. With no parts it is false."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " OR ".join(f"({p})" if isinstance(p, And | Or | Opaque) else str(p) for p in self.parts) or "FALSE"


_Comparison = Compare | IsNotDistinct | IsDistinct | In | NotIn | Between
ColumnTest = _Comparison | IsNull | IsNotNull | IsNan | IsNotNan | StartsWith | Like
"""A leaf that asks about one column."""

Predicate = ColumnTest | Constant | Opaque | Not | And | Or


def _operands(kind: type[And | Or], value: object) -> tuple[Predicate, ...]:
    checked = _checked(value)
    return checked.parts if isinstance(checked, And | Or) and isinstance(checked, kind) else (checked,)


def _checked(value: object) -> Predicate:
    if not isinstance(value, Predicate):
        raise TypeError(f"& | ~ join predicates, not {type(value).__name__}: put each comparison in parentheses")
    return value


def columns_of(predicate: Predicate) -> frozenset[ColumnPath]:
    """Every column that a predicate names."""
    return frozenset(_walk_columns(predicate))


def has_opaque(predicate: Predicate) -> bool:
    """Whether a part of a predicate is Opaque: only its engine can apply that."""
    match predicate:
        case And(parts) | Or(parts):
            return any(map(has_opaque, parts))
        case Not(part):
            return has_opaque(part)
    return isinstance(predicate, Opaque)


def _walk_columns(predicate: Predicate) -> Iterator[ColumnPath]:
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _walk_columns(part)
        case Not(part):
            yield from _walk_columns(part)
        case Opaque(_, columns):
            yield from columns
        case Constant():
            return
        case _:
            yield predicate.column
