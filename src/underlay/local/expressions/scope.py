"""The rows that expressions refer to: of one table, or of two side by side, each with an alias."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from underlay.errors import BadPredicate, InvalidRequest, UnderlayError, UnknownColumn
from underlay.local.conditions.shared_engine import connected
from underlay.local.dataset.cut_values import cut_column
from underlay.local.expressions.exact_moments import nanoseconds, number_name, with_numbers
from underlay.local.expressions.texts import SqlText, are_rewritten_right, located
from underlay.local.sql.tables import refuse_alike_names
from underlay.local.text.time_travel import quoted
from underlay.prune.parse.bind import resolve_path, unknown_column
from underlay.prune.parse.parameters import NO_PARAMETERS, Parameters
from underlay.prune.parse.sql import tokens_of
from underlay.prune.predicates.operand import ColumnPath
from underlay.schema.arrow_aliases import AnyChunks, AnyType
from underlay.values.no_rows import no_rows

ROW = "underlay row\x1f"
"""The column of row numbers, for answers that must say which row they are about. No column of a table has this name:
names hold no control characters."""

_NO_FIELD = re.compile(r'(?:Table|Values list|Subquery) "(?P<alias>.+?)" does not have a column named "(?P<name>.+?)"')
_NO_COLUMN = re.compile(r'Referenced column "(?P<name>.+?)" (?:was )?not found')
_NO_ALIAS = re.compile(r'Referenced table "(?P<alias>.+?)" not found')
_POINTED = re.compile(r"^LINE (?P<line>\d+): (?P<text>.*)\n(?P<pointer> *)\^", re.MULTILINE)
_QUOTES_HINT = "Text is written in quotes, '{name}', or as ul.lit(\"{name}\")."
_UNLIKE_HINT = "Compare the column with another one or with text, name it alone, or cast it first."


class Reference(NamedTuple):
    """A column, or a field of a struct, of one of the sides."""

    side: int
    path: ColumnPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Rows, and their name in expressions; None for columns without a qualifier. `schema` has all columns."""

    alias: str | None
    schema: pa.Schema

    def named_in(self, texts: Iterable[str], others: Collection[str] = ()) -> tuple[str, ...]:
        """The columns that these texts may name, except after another alias; all of them if a text uses the alias
        alone. What follows a struct's name may be a field, also if it is another alias.
        """
        words: set[bytes] = set()
        structs = {field.name.lower() for field in self.schema if field.type.num_fields}
        skipped = {name.lower() for name in others} - structs
        for text in texts:
            tokens = tokens_of(text)
            kinds = [None, *(one.token_type for one in tokens), None]
            owner = ""
            for token, before, after in zip(tokens, kinds, kinds[2:], strict=False):
                if token.token_type in (TokenType.STRING, TokenType.DOT):
                    continue
                name = token.text.lower()
                owner = owner if before is TokenType.DOT else name
                is_alone = TokenType.DOT not in (before, after)
                if name == (self.alias or "").lower() and is_alone:
                    return tuple(self.schema.names)
                if is_alone or owner not in skipped:
                    words.add(token.text.encode().lower())
        return tuple(name for name in self.schema.names if name.encode().lower() in words)  # A to Z, as DuckDB does


class Scope:
    """Has DuckDB evaluate expressions over its sides, whose rows are aligned one to one."""

    def __init__(self, sides: Sequence[Side], parameters: Parameters = NO_PARAMETERS) -> None:
        self.sides = tuple(sides)
        self.parameters = parameters

    def reference(self, tree: exp.Expr) -> Reference | None:
        """The column, if the expression is a plain column; None for other expressions, and if DuckDB must decide."""
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier):
            return None
        path = tuple(part.name for part in tree.parts)
        found = [*self._by_alias(path), *self._by_column(path)]
        return found[0] if len(found) == 1 else None

    def _by_alias(self, path: ColumnPath) -> list[Reference]:
        aliases = [(at, side) for at, side in enumerate(self.sides) if side.alias is not None]
        named = [(at, side) for at, side in aliases if (side.alias or "").lower() == path[0].lower() and path[1:]]
        return [Reference(at, inner) for at, side in named if (inner := _resolved(path[1:], side.schema))]

    def _by_column(self, path: ColumnPath) -> list[Reference]:
        return [Reference(at, found) for at, side in enumerate(self.sides) if (found := _resolved(path, side.schema))]

    def read_columns(self, texts: Iterable[SqlText]) -> list[tuple[str, ...]]:
        """The columns of each side that DuckDB gets for these texts.

        Raises Unsupported for columns that DuckDB cannot tell apart.
        """
        listed = list(texts)
        named = self._named_columns(listed)
        for at, (side, names) in enumerate(zip(self.sides, named, strict=True)):
            numbered = {path[0] for text in listed for other, path in text.numbers if other == at}
            if not numbered.issubset(names):
                named[at] = tuple(name for name in side.schema.names if name in numbered or name in names)
        return named

    def _named_columns(self, listed: Sequence[SqlText]) -> list[tuple[str, ...]]:
        """The columns that are named other than by their numbers."""
        aliases = [side.alias for side in self.sides if side.alias is not None]
        others = [[one for one in aliases if one != side.alias] for side in self.sides]
        written = [one.text for one in listed]
        named = [side.named_in(written, beside) for side, beside in zip(self.sides, others, strict=True)]
        for side, names in zip(self.sides, named, strict=True):
            refuse_alike_names(pa.schema([side.schema.field(name) for name in names]))
        return named

    def exact(self, text: SqlText) -> SqlText:
        """The text as rows are asked by it: it compares times by their nanoseconds where DuckDB would not."""
        return with_numbers(text, self._find_column)

    def _find_column(self, tree: exp.Expr) -> tuple[Reference, AnyType] | None:
        found = self.reference(tree)
        return None if found is None else (found, type_of(found.path, self.sides[found.side].schema))

    def check(self, text: SqlText) -> str:
        """DuckDB's type for an expression. Raises InvalidRequest with the position in the text."""
        return _checked(self.sides, self.parameters, text)

    def check_anew(self, text: SqlText) -> str:
        """The same, asked of DuckDB again."""
        self.read_columns([text])
        empty = [no_rows(side.schema) for side in self.sides]
        query = f"SELECT (\n{text.text}\n) AS v FROM {self.tables} WHERE ((\n{text.text}\n) IS NULL) IS NULL"
        if text.is_condition:
            query = f"SELECT true AS v FROM {self.tables} WHERE (\n{text.text}\n)"
        try:
            with connected(is_pushing=False) as connection:
                self.register(connection, [text], empty)
                found = connection.execute(query, self.given_for([text]))
                kind = str(found.description[0][1])
                found.fetchall()
        except UnderlayError as error:
            raise self.explained(error, text) from error.__cause__
        return kind

    def values(self, texts: Sequence[SqlText], expressions: Sequence[str], rows: Sequence[pa.Table]) -> list[AnyChunks]:
        """The values of expressions that contain these texts, for the rows of all sides. Raises InvalidRequest."""
        chosen = ", ".join(f"{expression} AS v{at}" for at, expression in enumerate(expressions))
        try:
            with connected(is_pushing=False, is_rewriting=are_rewritten_right(texts)) as connection:
                self.register(connection, texts, rows)
                query = f"SELECT {chosen} FROM {self.tables}"
                found = connection.execute(query, self.given_for(texts)).to_arrow_reader(1 << 16).read_all()
        except UnderlayError as error:
            raise self.explained(error, texts[0] if len(texts) == 1 else None) from error.__cause__
        return list(found.columns)

    @property
    def tables(self) -> str:
        """The FROM clause: the rows of the sides beside each other."""
        return " POSITIONAL JOIN ".join(self.table(at) for at in range(len(self.sides)))

    def table(self, side: int) -> str:
        """One side, under its alias."""
        alias = self.sides[side].alias
        return f'"underlay side {side}"' + ("" if alias is None else f" AS {quoted(alias)}")

    def number_of(self, side: int) -> str:
        """The number of a side's row, where rows are registered with numbers."""
        alias = self.sides[side].alias
        return f"{quoted(alias or f'underlay side {side}')}.{quoted(ROW)}"

    def register(
        self,
        connection: duckdb.DuckDBPyConnection,
        texts: Iterable[SqlText],
        rows: Sequence[pa.Table],
        *,
        with_row_numbers: bool = False,
    ) -> None:
        """Register the rows with a connection: the columns that the texts name, and the number of each row."""
        listed = list(texts)
        for at, (names, table) in enumerate(zip(self._named_columns(listed), rows, strict=True)):
            given = table.select(names)
            self._refuse_cut(at, given, listed)
            given = _readable(given)
            for place in dict.fromkeys(place for one in listed for place in one.numbers if place[0] == at):
                given = given.append_column(number_name(place), nanoseconds(field_of(table, place[1])))
            if with_row_numbers or not given.num_columns:  # a table without columns would have no rows
                given = given.append_column(ROW, pa.array(np.arange(table.num_rows)))
            connection.register(f"underlay side {at}", given)

    def _refuse_cut(self, side: int, rows: pa.Table, texts: Sequence[SqlText]) -> None:
        """Raise BadPredicate for a value that DuckDB would cut."""
        name = cut_column(rows)
        if name is None:
            return
        text = next(one for one in texts if name in self.sides[side].named_in([one.text]))
        problem = f"DuckDB would truncate values of {name}, which are {rows.schema.field(name).type}"
        raise located(BadPredicate(problem, hint=_UNLIKE_HINT), text)

    def given_for(self, texts: Iterable[SqlText]) -> dict[str, object] | None:
        """The parameters that some texts name."""
        return {name: value for one in texts for name, value in (one.given(self.parameters) or {}).items()} or None

    def explained(self, error: UnderlayError, text: SqlText | None) -> UnderlayError:
        """DuckDB's error as one about the text: the missing column, and its position."""
        cause = error.__cause__
        if not isinstance(cause, duckdb.Error) or not isinstance(error, InvalidRequest):
            return error if text is None else located(error, text)
        message = str(cause)
        found = self._missing(message, text) or BadPredicate(message.partition("\n")[0], hint=error.hint)
        pointed = _POINTED.search(message)
        if text is None:
            return InvalidRequest(found.problem, hint=found.hint)
        if pointed and not pointed["text"].startswith("..."):
            lines = text.text.count("\n") + 1
            line = (int(pointed["line"]) - 2) % (lines + 1) + 1  # the text occurs in the query once or twice
            column = len(pointed["pointer"]) - len(f"LINE {pointed['line']}: ") + 1
            found.place = f"line {line}, column {column}" if line <= lines else None
        return located(found, text)

    def _missing(self, message: str, text: SqlText | None) -> UnderlayError | None:
        if by_alias := _NO_FIELD.search(message):
            side = next((one for one in self.sides if (one.alias or "").lower() == by_alias["alias"].lower()), None)
            return unknown_column(by_alias["name"], list((side or self.sides[0]).schema.names))
        if by_name := _NO_COLUMN.search(message):
            error = unknown_column(by_name["name"], [name for side in self.sides for name in side.schema.names])
            if text is not None and not text.is_condition:
                error.hint = f"{error.hint} {_QUOTES_HINT.format(name=by_name['name'])}"
            return error
        if by_table := _NO_ALIAS.search(message):
            aliases = " and ".join(one.alias for one in self.sides if one.alias is not None)
            hint = f"Rows are known here as {aliases}." if aliases else "Name columns alone."
            return UnknownColumn(f"there is no table or column {by_table['alias']} here", hint=hint)
        return None


@lru_cache(maxsize=256)
def _checked(sides: tuple[Side, ...], parameters: Parameters, text: SqlText) -> str:
    """What DuckDB said of a text. It is the same each time, and asking is a good part of a small update."""
    return Scope(sides, parameters).check_anew(text)


def field_of(rows: pa.Table, path: ColumnPath) -> AnyChunks:
    """A column, or a field of a struct."""
    column = rows.column(path[0])
    for step in path[1:]:
        column = pc.struct_field(column, step)
    return column


def type_of(path: ColumnPath, schema: pa.Schema) -> AnyType:
    """The type of a column, or of a field of a struct."""
    kind: AnyType = schema.field(path[0]).type
    for step in path[1:]:
        kind = kind.field(step).type
    return kind


def _resolved(path: ColumnPath, schema: pa.Schema) -> ColumnPath | None:
    try:
        return resolve_path(path, schema)
    except UnknownColumn:
        return None


def _readable(table: pa.Table) -> pa.Table:
    """The same values in types that DuckDB has: it lacks 16-bit floats."""
    types = pa.schema(
        [pa.field(one.name, pa.float32() if one.type == pa.float16() else one.type) for one in table.schema]
    )
    return table.cast(types) if types.types != table.schema.types else table
