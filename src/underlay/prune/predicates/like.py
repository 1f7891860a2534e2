"""LIKE patterns: the text that every match begins with, and what the rest of the pattern asks.

% stands for any text and _ for one character. The escape character makes the next one stand for itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from underlay.errors import BadPredicate
from underlay.prune.predicates.predicate import Like

_BACKSLASH = "\\"


class Rest(Enum):
    """What follows the prefix of a pattern."""

    NOTHING = "nothing"
    ANYTHING = "anything"
    PATTERN = "pattern"


@dataclass(frozen=True, slots=True)
class LikeShape:
    """A pattern as the pruner sees it: `prefix`, unescaped, then `rest`."""

    prefix: str
    rest: Rest


def shape_of(like: Like) -> LikeShape:
    """The prefix of a pattern. A backslash without ESCAPE ends it, since engines read on differently."""
    prefix: list[str] = []
    characters = iter(like.pattern)
    for character in characters:
        if character == like.escape:
            prefix.append(_escaped(next(characters, None), like))
        elif character == "%":
            is_last = all(rest == "%" for rest in characters)
            return LikeShape("".join(prefix), Rest.ANYTHING if is_last else Rest.PATTERN)
        elif character == "_" or (character == _BACKSLASH and like.escape is None):
            return LikeShape("".join(prefix), Rest.PATTERN)
        else:
            prefix.append(character)
    return LikeShape("".join(prefix), Rest.NOTHING)


def regex_of(like: Like) -> str:
    """The pattern as an RE2 expression that matches whole texts.

    Raises BadPredicate for a backslash without ESCAPE, which is itself in DuckDB and an escape in Spark.
    """
    if like.escape is None and _BACKSLASH in like.pattern:
        raise BadPredicate(
            f"{like}: a backslash in LIKE means different things to different engines",
            hint=r"Add ESCAPE '\', or ESCAPE '!' if the backslash stands for itself.",
        )
    found: list[str] = []
    characters = iter(like.pattern)
    for character in characters:
        if character == like.escape:
            found.append(_quoted(_escaped(next(characters, None), like)))
        else:
            found.append({"%": ".*", "_": "."}.get(character) or _quoted(character))
    return rf"(?s)\A{''.join(found)}\z"


def check_like(like: Like) -> Like:
    """The predicate, when its escape is one character and escapes something wherever it stands."""
    if like.escape is not None and len(like.escape) != 1:
        raise BadPredicate(f"{like}: the escape must be one character", found=repr(like.escape))
    shape_of(like)
    if like.escape is not None:
        regex_of(like)
    return like


def _escaped(character: str | None, like: Like) -> str:
    if character is None:
        raise BadPredicate(f"{like}: the pattern ends with its escape character", hint="Write it twice for itself.")
    return character


def _quoted(character: str) -> str:
    return r"\x{0}" if character == "\0" else re.escape(character) if character.isascii() else character
