"""Columns as SQL: what analysts type for Spark or DuckDB, and what Underlay prints.

    id bigint not null comment 'the key', tags array<string>, pos struct<x: double, y: double>, price decimal(10, 2)

Types may have the names of Spark, of DuckDB, or our own. A timestamp without a zone is `timestamp(us)`; `timestamptz`
is `timestamp(us, UTC)`. `varchar(20)` and `json` are strings: neither the length nor the JSON is checked. Ids are
assigned depth first from 1.
"""

from __future__ import annotations

import re

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from underlay.errors import InvalidRequest, Unsupported
from underlay.prune.predicates.operand import format_column, format_operand
from underlay.schema.convert.default import format_default
from underlay.schema.ids import UNNUMBERED, number_fields
from underlay.schema.names import check_names
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type, TypeKind, parse_scalar

# Names of scalar types in Spark SQL, DuckDB and Underlay.

_TEXT = ("varchar", "char", "character", "character varying", "string", "text", "nvarchar", "bpchar")
_DECIMALS = ("decimal", "numeric", "dec")
_NAMES: dict[str, str] = {
    **dict.fromkeys(("bool", "logical"), "boolean"),
    **dict.fromkeys(("tinyint", "int1", "byte"), "int8"),
    **dict.fromkeys(("smallint", "int2", "short"), "int16"),
    **dict.fromkeys(("int", "integer", "int4", "signed"), "int32"),
    **dict.fromkeys(("bigint", "long"), "int64"),
    "utinyint": "uint8",
    "usmallint": "uint16",
    "uinteger": "uint32",
    "uint": "uint32",
    "ubigint": "uint64",
    **dict.fromkeys(("real", "float", "float4"), "float32"),
    **dict.fromkeys(("double", "float8", "double precision"), "float64"),
    **dict.fromkeys((*_TEXT, "json", "jsonb"), "string"),
    **dict.fromkeys(("blob", "bytea", "varbinary"), "binary"),
    **dict.fromkeys(("time", "time without time zone"), "time(us)"),
    "time_ns": "time(ns)",
    **dict.fromkeys(("timestamp", "timestamp_ntz", "timestamp_us", "datetime"), "timestamp(us)"),
    "timestamp without time zone": "timestamp(us)",
    **dict.fromkeys(("timestamptz", "timestamp_ltz", "timestamp with time zone"), "timestamp(us, UTC)"),
    "timestamp_ns": "timestamp(ns)",
    "timestamp_ms": "timestamp(ms)",
    "timestamp_s": "timestamp(s)",
    **dict.fromkeys(("decimal", "numeric", "dec"), "decimal(18, 3)"),
}
"""What a name without parameters means; other names are our own. A bare decimal is DuckDB's."""

_HINTS = {
    **dict.fromkeys(("hugeint", "uhugeint", "int128", "uint128", "bignum", "varint"), "Use decimal(38, 0)."),
    **dict.fromkeys(("interval", "duration"), "Use bigint and put the unit in the name, such as wait_us."),
    **dict.fromkeys(("variant", "object"), "Use string or a struct."),
    **dict.fromkeys(("timetz", "time with time zone"), "Use time, and a column for the zone."),
    "enum": "Use string.",
    "union": "Use a struct with one field for each type.",
    **dict.fromkeys(("bit", "bitstring"), "Use binary or string."),
    **dict.fromkeys(("geometry", "geography"), "Use binary, with well-known binary (WKB) inside."),
    **dict.fromkeys(("void", "null"), "Use the type that values will have."),
}


_QUOTED = re.compile(r"(['\"])(.*)\1")


def read_type_name(name: str, inside: str | None) -> Scalar:
    """The type of a name and the text of its parameters, if it has any. Raises InvalidRequest or Unsupported."""
    lower = name.lower()
    if lower in _HINTS:
        raise Unsupported("tables have no columns of this type", found=name, hint=_HINTS[lower])
    if inside is None:
        return parse_scalar(_NAMES.get(lower, lower))
    given = [part.strip() for part in inside.split(",")]
    if lower == "timestamp" and len(given) == 2:  # a zone is a name, which may be quoted, as in 'UTC'
        given[1] = _QUOTED.sub(r"\2", given[1])
    return _with_parameters(lower, given, f"{name}({inside})")


def _with_parameters(name: str, given: list[str], written: str) -> Scalar:
    match name, given:
        case _, [digits] if name in _TEXT and digits.isdecimal() and int(digits):
            return Scalar(TypeKind.STRING)
        case (("binary" | "fixed" | "varbinary"), [digits]):
            return parse_scalar(f"fixed({digits})")
        case _, [precision] if name in _DECIMALS:
            return parse_scalar(f"decimal({precision}, 0)")
        case _, _ if name in _DECIMALS:
            return parse_scalar(f"decimal({', '.join(given)})")
        case (("timestamp" | "timestamptz" | "time"), [digits]) if digits.isdecimal():
            return _with_digits(name, digits, written)
    return parse_scalar(f"{name}({', '.join(given)})")


def _with_digits(name: str, digits: str, written: str) -> Scalar:
    """`timestamp(3)`: how many digits follow the second."""
    unit = {"0": "s", "3": "ms", "6": "us", "9": "ns"}.get(digits)
    if unit is None:
        raise InvalidRequest("no such precision", expected="0, 3, 6 or 9 digits", found=written)
    kind = TypeKind.TIME if name == "time" else TypeKind.TIMESTAMP
    return Scalar(kind, unit=unit, zone="UTC" if name == "timestamptz" else None)


MAX_TEXT_CHARS = 1_000_000
_UNITS_OF_INTERVALS = ("year", "month", "day", "hour", "minute", "second", "to")
_MAX_DEPTH = 64
_CLOSING = {"<": ">", "(": ")"}
_HINT = "Write columns as in: id bigint not null comment 'the key', tags array<string>."


class _ColumnSql(DuckDB):
    """DuckDB's tokens, and Spark's quotes for names."""

    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS = ['"', "`"]  # noqa: RUF012  # sqlglot reads it from the class


def parse_ddl(text: str) -> TableSchema:
    """The columns that the text lists, with or without `create table x (…)` around them. Raises InvalidRequest."""
    if len(text) > MAX_TEXT_CHARS:
        raise InvalidRequest("the text is too long", expected=f"{MAX_TEXT_CHARS} characters", found=len(text))
    try:
        tokens = _ColumnSql().tokenize(text)
    except TokenError as error:
        raise InvalidRequest("the text ends inside quotes or a comment", found=str(error)[:200]) from None
    return _Reader(text, tokens).read_table()


def format_ddl(schema: TableSchema) -> str:
    """The columns as text that `parse_ddl` reads back, one on each line."""
    return ",\n".join(_format_field(field, " ") for field in schema.fields)


def _format_field(field: Field, separator: str) -> str:
    parts = [f"{format_column((field.name,))}{separator}{_format_type(field.type)}"]
    if field.is_required:
        parts.append("not null")
    if field.default is not None:
        parts.append(f"default {format_operand(field.default)}")
    if field.comment is not None:
        parts.append(f"comment {format_operand(field.comment)}")
    return " ".join(parts)


def _format_type(type_: Type) -> str:
    match type_:
        case Scalar():
            return str(type_)
        case StructOf(fields):
            return f"struct<{', '.join(_format_field(field, ': ') for field in fields)}>"
        case ListOf(element):
            return f"list<{_format_part(element)}>"
        case MapOf(key, value):
            return f"map<{_format_type(key.type)}, {_format_part(value)}>"


def _format_part(field: Field) -> str:
    return f"{_format_type(field.type)}{' not null' if field.is_required else ''}"


class _Reader:
    """Reads the tokens in one pass. Its place is the next token."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0

    def read_table(self) -> TableSchema:
        is_wrapped = self._take_word("create")
        if is_wrapped:
            self._skip_to_columns()
        fields = self._read_fields((), ")" if is_wrapped else None)
        if self._next_text() == ";":
            self._at += 1
        if self._at < len(self._tokens):
            raise self._refuse("a comma or the end")
        return number_fields(fields)

    def _skip_to_columns(self) -> None:
        """Past `or replace table if not exists a.b (`."""
        while self._at < len(self._tokens) and self._next_text() != "(":
            self._at += 1
        self._expect("(")

    def _read_fields(self, above: tuple[str, ...], closing: str | None) -> tuple[Field, ...]:
        fields = [self._read_field(above)]
        while self._next_text() == ",":
            self._at += 1
            fields.append(self._read_field(above))
        if closing is not None:
            self._expect(closing)
        check_names((field.name for field in fields), above)
        return tuple(fields)

    def _read_field(self, above: tuple[str, ...]) -> Field:
        name = self._read_name()
        if self._next_text() == ":":
            self._at += 1
        type_ = self._read_type((*above, name))
        is_required, default, comment = False, None, None
        while True:
            if self._take_word("not"):
                self._expect("null")
                is_required = True
            elif self._take_word("comment"):
                comment = self._read_literal()
            elif self._take_word("default"):
                default = self._read_default(type_)
            elif not self._take_word("null"):
                break
        return Field(id=UNNUMBERED, name=name, type=type_, is_required=is_required, comment=comment, default=default)

    def _read_type(self, path: tuple[str, ...]) -> Type:
        if len(path) > _MAX_DEPTH:
            raise InvalidRequest("the column is nested too deeply", place=path[0])
        found = self._read_plain_type(path)
        while self._next_text() == "[":
            self._at += 1
            if self._next_text() != "]":
                self._at += 1
            self._expect("]")
            found = ListOf(_part("element", found, is_required=False))
        return found

    def _read_plain_type(self, path: tuple[str, ...]) -> Type:
        opening = self._tokens[self._at + 1].text if self._at + 1 < len(self._tokens) else ""
        match self._next_text().lower(), opening:
            case (("array" | "list"), "<"):
                self._at += 2
                element = self._read_part("element", path)
                self._expect(">")
                return ListOf(element)
            case "map", ("<" | "("):
                self._at += 2
                key = self._read_part("key", path)
                self._expect(",")
                value = self._read_part("value", path)
                self._expect(_CLOSING[opening])
                return MapOf(_part("key", key.type, is_required=True), value)
            case (("struct" | "row"), ("<" | "(")):
                self._at += 2
                return StructOf(self._read_fields(path, _CLOSING[opening]))
        return self._read_scalar(path)

    def _read_part(self, name: str, path: tuple[str, ...]) -> Field:
        type_ = self._read_type((*path, name))
        is_required = self._take_word("not")
        if is_required:
            self._expect("null")
        return _part(name, type_, is_required=is_required)

    def _read_scalar(self, path: tuple[str, ...]) -> Scalar:
        name = self._read_name()
        for first, second in (("double", "precision"), ("character", "varying")):
            if name.lower() == first and self._take_word(second):
                name = f"{first} {second}"
        if name.lower() == "interval":
            self._skip_units()
        inside = self._read_parameters() if self._next_text() == "(" else None
        for word in ("with", "without"):
            if self._take_word(word):
                self._expect("time")
                self._expect("zone")
                name = f"{name} {word} time zone"
        try:
            return read_type_name(name, inside)
        except (InvalidRequest, Unsupported) as error:
            raise error.at(format_column(path)) from None

    def _skip_units(self) -> None:
        """Past `day to second`, so that the type is refused and not what follows it."""
        while self._next_text().lower() in _UNITS_OF_INTERVALS:
            self._at += 1

    def _read_parameters(self) -> str:
        """The text between parentheses, as it is: a zone is not SQL."""
        begin = self._tokens[self._at].end + 1
        while self._at < len(self._tokens) and self._next_text() != ")":
            self._at += 1
        end = self._tokens[self._at].start if self._at < len(self._tokens) else len(self._text)
        self._expect(")")
        return self._text[begin:end]

    def _read_name(self) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        is_quoted = token is not None and token.token_type is TokenType.IDENTIFIER
        is_word = token is not None and (token.text[:1].isalpha() or token.text[:1] == "_")
        if token is None or not (is_quoted or (is_word and token.token_type is not TokenType.STRING)):
            raise self._refuse("a name")
        self._at += 1
        return token.text

    def _read_literal(self) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if token is None or token.token_type is not TokenType.STRING:
            raise self._refuse("text in single quotes")
        self._at += 1
        return token.text

    def _read_default(self, type_: Type) -> str | None:
        if self._take_word("null"):
            return None
        sign = "-" if self._next_text() == "-" else ""
        self._at += len(sign)
        if not isinstance(type_, Scalar) or self._at >= len(self._tokens):
            raise self._refuse("the default of a scalar column")
        self._at += 1
        return format_default(sign + self._tokens[self._at - 1].text, type_)

    def _next_text(self) -> str:
        """The next token that is neither a string nor a quoted name."""
        if self._at >= len(self._tokens):
            return ""
        token = self._tokens[self._at]
        return "" if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) else token.text

    def _take_word(self, word: str) -> bool:
        is_next = self._next_text().lower() == word
        self._at += is_next
        return is_next

    def _expect(self, text: str) -> None:
        if not self._take_word(text):
            raise self._refuse(text)

    def _refuse(self, expected: str) -> InvalidRequest:
        if self._at >= len(self._tokens):
            return InvalidRequest("the text ends too early", expected=expected, hint=_HINT)
        token = self._tokens[self._at]
        place = f"line {token.line}, column {token.col}"
        return InvalidRequest("not a list of columns", place=place, expected=expected, found=token.text, hint=_HINT)


def _part(name: str, type_: Type, *, is_required: bool) -> Field:
    return Field(id=UNNUMBERED, name=name, type=type_, is_required=is_required)
