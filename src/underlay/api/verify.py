"""Verifies a lake, its registry included."""

from __future__ import annotations

from collections.abc import Sequence

from underlay.api.opened.context import LakeContext
from underlay.errors import RegistryRefused, Unavailable, UnderlayError
from underlay.maintain.verify.finding import Report
from underlay.maintain.verify_lake import verify
from underlay.registry.database.location import is_server
from underlay.registry.registry import Registry
from underlay.table.catalog.lake import LakeCatalog


def verify_lake(
    context: LakeContext, names: Sequence[str], *, deep: bool, repair: bool, registry: bool = True
) -> Report:
    """What is wrong with these tables, or with all; through no cache, so that what is stored is what is checked."""
    check = None if context.registry is None or not registry else _RegistryCheck(context.registry)
    lake = LakeCatalog(context.catalog.store)
    return verify(lake, context.stores, names or None, deep=deep, repair=repair, registry=check)


class _RegistryCheck:
    """The registry, compared with the store. What it merely lacks is applied first."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def differences(self) -> Sequence[object]:
        """Rows that differ, or the one error for which it is not used.

        A file that cannot be opened is not compared: the lake may be read-only, which is not a fault.
        """
        try:
            self._registry.follow()
            return [
                f"{one.table}: {one.kind.value}: {', '.join(map(str, one.key))}" for one in self._registry.differences()
            ]
        except UnderlayError as error:
            is_of_registry = isinstance(error, RegistryRefused) or error.place == self._registry.url
            is_closed_file = isinstance(error, Unavailable) and not is_server(self._registry.url)
            return [error] if is_of_registry and not is_closed_file else []

    def restore(self) -> None:
        """Rebuild it from the store."""
        self._registry.restore()
