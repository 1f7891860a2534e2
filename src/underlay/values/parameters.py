"""Values for the parameters of a text, as a caller gives them: by name for `$name`, or in order for `?`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from underlay.errors import InvalidRequest

Given = Sequence[object] | Mapping[str, object]
"""Values for `?` in their order, or for `$name` by name."""


def by_name(given: Given | None, *, hint: str) -> dict[str, object]:
    """The values by name, in lower case; those of a list by their numbers from 1. Raises InvalidRequest."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        found: dict[str, object] = {}
        for name, value in given.items():
            if not isinstance(name, str) or name.lower() in found:
                raise InvalidRequest(
                    "the name of a parameter is not text, or occurs twice", found=repr(name), hint=hint
                )
            found[name.lower()] = value
        return found
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise InvalidRequest("parameters must be a list, or values by name", found=type(given).__name__, hint=hint)
    return {str(at): value for at, value in enumerate(given, 1)}
