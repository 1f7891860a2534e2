"""The values of a statement's placeholders, as requests have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from underlay.errors import InvalidRequest
from underlay.server.common.problem import Problem
from underlay.server.lockdown.check import Lockdown
from underlay.server.worker.job import check_type

Parameters = Sequence[object] | Mapping[str, object] | None


def read_parameters(lockdown: Lockdown, given: Parameters) -> Parameters:
    """Values for placeholders; one with a type is cast to it by DuckDB, whatever the engine. Raises Problem."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {name: _value(lockdown, value) for name, value in given.items()}
    return [_value(lockdown, value) for value in given]


def _value(lockdown: Lockdown, value: object) -> object:
    if not isinstance(value, dict):
        return value
    if set(value) != {"value", "type"}:
        raise InvalidRequest('a parameter is a value, or {"value": …, "type": …}', found=str(sorted(value))[:80])
    kind = check_type(value["type"])
    try:
        return lockdown.cast(value["value"], kind)
    except InvalidRequest as error:  # its cause would be taken for a fault of the statement
        detail = f"{error.problem} (found {error.found})"
        raise Problem(status=400, code="bad_parameter", detail=detail) from None
