"""Converts SQL literals to Python values, without losing a digit."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from uuid import UUID

from sqlglot import exp

from underlay.prune.domains.time_of_day import parse_time
from underlay.prune.parse.sql_errors import refuse
from underlay.prune.predicates.instant import Instant, has_sub_microseconds, parse_day, parse_instant
from underlay.prune.predicates.number import MAGNITUDE_DIGITS, is_number_text
from underlay.prune.predicates.operand import Operand

_Type = exp.DType
_OFFSET = re.compile(r":\d\d.*[+-]\d")
_WITHOUT_ZONE = {_Type.TIMESTAMP, _Type.TIMESTAMPNTZ, _Type.TIMESTAMP_NS}
_TIMESTAMPS = {_Type.TIMESTAMP, _Type.TIMESTAMPNTZ, _Type.TIMESTAMPTZ, _Type.TIMESTAMPLTZ}
_HEX_PAIRS = re.compile(r"(?:[0-9A-Fa-f]{2})*", re.ASCII)
_LITERAL_HINT = (
    "Write a number, 'text', TRUE, FALSE, NULL, X'0AFF', DATE '2024-01-31', TIMESTAMP '2024-01-31 23:59:59', "
    "TIME '23:59:59', UUID '…' or CAST('NaN' AS DOUBLE)."
)


def read_literal(node: exp.Expr, within: exp.Expr) -> Operand:
    """The value of a literal. Raises BadPredicate, naming the comparison it stands in, for anything else."""
    match node:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal():
            return node.name if node.is_string else _read_number(node.name, node)
        case exp.Neg():
            return _negate(_inside(node.this), within)
        case exp.HexString():
            return _read_hex(node)
        case exp.Cast() if not isinstance(node, exp.TryCast):
            return _read_cast(node, within)
        case _:
            raise refuse(within, "not a comparison of one column with literals", _LITERAL_HINT)


def _inside(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _negate(node: exp.Expr, within: exp.Expr) -> Operand:
    """Minus a number. Minus text is refused: engines disagree on what it is."""
    if isinstance(node, exp.Literal | exp.Neg) and not node.is_string:
        value = read_literal(node, within)
        if isinstance(value, Decimal):
            return value.copy_negate()
        if isinstance(value, int | float):
            return -value
    raise refuse(within, "not a comparison of one column with literals", _LITERAL_HINT)


def _read_number(text: str, node: exp.Expr) -> Operand:
    """Digits are an int, digits with a point an exact Decimal, and only an exponent makes a float."""
    if len(text) > MAGNITUDE_DIGITS or not is_number_text(text):
        raise refuse(node, f"not a number of at most {MAGNITUDE_DIGITS} characters", _LITERAL_HINT)
    if "e" in text.lower():
        value = float(text)
        if math.isinf(value):
            raise refuse(node, "beyond the largest DOUBLE", _LITERAL_HINT)
        return value
    return Decimal(text) if "." in text else int(text)


def _read_hex(node: exp.HexString) -> bytes:
    if not _HEX_PAIRS.fullmatch(node.name):
        raise refuse(node, "not pairs of hexadecimal digits", _LITERAL_HINT)
    return bytes.fromhex(node.name)


def _read_cast(node: exp.Cast, within: exp.Expr) -> Operand:
    """Text with a type. Other casts are refused, since a cast may round."""
    source = _inside(node.this)
    if not isinstance(source, exp.Literal) or not source.is_string or node.args.get("format") or node.to.expressions:
        raise refuse(within, "not a comparison of one column with literals", _LITERAL_HINT)
    value = _read_typed(source.name, node.to.this)
    if value is None:
        raise refuse(node, "not a literal that is understood", _LITERAL_HINT)
    return value


def _read_typed(text: str, type_: exp.DType) -> Operand:
    """The value, or None when the type is not supported or the text is not a value of it."""
    if type_ is _Type.DATE:
        return parse_day(text)
    if type_ in _WITHOUT_ZONE and _OFFSET.search(text):
        return None  # SQL ignores the offset; we would not
    if type_ in _TIMESTAMPS:
        instant = parse_instant(text)
        return instant and Instant(instant.ns, coarse=has_sub_microseconds(instant))
    if type_ is _Type.TIMESTAMP_NS:
        return parse_instant(text)
    if type_ is _Type.TIME:
        return parse_time(text)
    if type_ is _Type.UUID:
        return _read_uuid(text)
    if type_ is _Type.DOUBLE:
        return _read_double(text)
    return None


def _read_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _read_double(text: str) -> float | None:
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None
