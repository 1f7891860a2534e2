"""Values for `$name` and `?` in a condition: they are put into its tree, never into its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from underlay.errors import BadPredicate
from underlay.values.parameters import Given, by_name

_Type = exp.DType
_HINT = (
    "Give values by name, params={'zone': 'JFK'} for $zone, or as a list, params=['JFK'] for ?;"
    " on the command line, --param zone=JFK or --param JFK."
)
_LONGEST_INTEGER_BITS = 127
_PLAIN = frozenset((type(None), bool, int, float, str, bytes, Decimal, date, datetime, time, timedelta, UUID))
"""Types whose values never change, and print alike only when they are equal. Arrays of numpy leave out digits."""

Key = tuple[tuple[str, type, object], ...]


@dataclass(frozen=True)
class Parameters:
    """Values by name, those of a list by their numbers from 1. Equal when their keys are."""

    values: Mapping[str, object] = field(compare=False, hash=False)
    key: Key = ()


NO_PARAMETERS = Parameters({})


def key_of(values: Mapping[str, object]) -> Key:
    """A key for what is known of the values: equal for equal values of plain types, never for others."""
    return tuple(
        (name, type(value), repr(value) if type(value) in _PLAIN else object())
        for name, value in sorted(values.items())
    )


def number_parameters(text: str, tokens: Sequence[Token], given: Given | None) -> tuple[str, Parameters]:
    """The text with every `?` as its number and every name in lower case, and the values that it names.

    Raises BadPredicate when a value is missing or left over.
    """
    (numbered,), parameters = number_in_all([(text, tokens)], given)
    return numbered, parameters


def number_in_all(texts: Iterable[tuple[str, Sequence[Token]]], given: Given | None) -> tuple[list[str], Parameters]:
    """The same for the texts of one statement, whose `?` are counted from the first to the last."""
    names: dict[str, None] = {}
    count, is_named, numbered = 0, False, []
    for text, tokens in texts:
        pieces: list[str] = []
        done = 0
        for at, token in enumerate(tokens):
            if token.token_type is TokenType.PLACEHOLDER and token.text == "?":
                count += 1
                name, end = str(count), token.end + 1
            elif (
                token.token_type is TokenType.PARAMETER
                and token.text == "$"
                and at + 1 < len(tokens)
                and tokens[at + 1].start == token.end + 1
            ):
                is_named = True
                name, end = tokens[at + 1].text.lower(), tokens[at + 1].end + 1
            else:
                continue
            pieces += [text[done : token.start], f"${name}"]
            done = end
            names[name] = None
        numbered.append("".join((*pieces, text[done:])))
    if count and is_named:
        raise BadPredicate("? and names such as $zone cannot be mixed", hint=_HINT)
    return numbered, _matched(names, given)


def _matched(names: Mapping[str, None], given: Given | None) -> Parameters:
    named = by_name(given, hint=_HINT)
    missing = [name for name in names if name not in named]
    if missing:
        raise BadPredicate("no value is given", found=", ".join(f"${name}" for name in missing), hint=_HINT)
    surplus = [name for name in named if name not in names]
    if surplus:
        raise BadPredicate(
            "some given values are not used",
            found=", ".join(f"${name}" for name in surplus),
            hint=_HINT,
        )
    if not names:
        return NO_PARAMETERS
    # a scan reads later: a list that its owner changes in the meantime must not change the query
    values = {name: value if type(value) in _PLAIN else deepcopy(value) for name, value in named.items()}
    return Parameters(values, key_of(values))


def fill(tree: exp.Expr, parameters: Parameters) -> exp.Expr:
    """The tree with literals where it names parameters whose values have one."""
    if not parameters.values:
        return tree
    return tree.transform(lambda node: _filled(node, parameters))


def _filled(node: exp.Expr, parameters: Parameters) -> exp.Expr:
    if not isinstance(node, exp.Placeholder) or node.name.lower() not in parameters.values:
        return node
    return _literal(parameters.values[node.name.lower()]) or node


def _literal(value: object) -> exp.Expr | None:
    """A literal of the value's own type; None for a type that has none here, such as a subclass with more digits."""
    kind = type(value)
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int) and kind is int and value.bit_length() <= _LONGEST_INTEGER_BITS:
        return _signed(str(abs(value)), is_negative=value < 0)
    if isinstance(value, float) and kind is float:
        return _cast(repr(value), _Type.DOUBLE)
    if isinstance(value, Decimal) and kind is Decimal and value.is_finite():
        text = f"{abs(value):f}"
        return _signed(text if "." in text else f"{text}.", is_negative=value < 0)
    if isinstance(value, str) and kind is str:
        return exp.Literal.string(value)
    if isinstance(value, bytes) and kind is bytes:
        return exp.HexString(this=value.hex())
    if isinstance(value, UUID):
        return _cast(str(value), _Type.UUID)
    return _moment(value)


def _moment(value: object) -> exp.Expr | None:
    if isinstance(value, datetime) and type(value) is datetime:
        return _cast(value.isoformat(" "), _Type.TIMESTAMP if value.tzinfo is None else _Type.TIMESTAMPTZ)
    if isinstance(value, date) and type(value) is date:
        return _cast(value.isoformat(), _Type.DATE)
    if isinstance(value, time) and type(value) is time and value.tzinfo is None:
        return _cast(value.isoformat(), _Type.TIME)
    return None


def _signed(text: str, *, is_negative: bool) -> exp.Expr:
    literal = exp.Literal.number(text)
    return exp.Neg(this=literal) if is_negative else literal


def _cast(text: str, kind: exp.DType) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType(this=kind))
