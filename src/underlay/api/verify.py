"""Verifies a lake, its registry included."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    """What is wrong with these tables, or with all. Bypasses all caches, so that it checks what is stored."""
    check = None if context.registry is None or not registry else VerifiedRegistry(context.registry)
    lake = LakeCatalog(context.catalog.store)
    return verify(lake, context.stores, names or None, deep=deep, repair=repair, registry=check)


def compare_rows(registry: Registry) -> list[str]:
    """A line of text for each row that differs from the store."""
    return [f"{one.table}: {one.kind.value}: {', '.join(map(str, one.key))}" for one in registry.differences()]


class VerifiedRegistry:
    """Compares a lake's registry with the store, and restores it. Commits that it merely lacks are applied first."""

    def __init__(
        self,
        registry: Registry,
        *,
        compare: Callable[[Registry], Sequence[str]] = compare_rows,
        skip: Callable[[UnderlayError], object] | None = None,
    ) -> None:
        """`compare` finds and words the differences; `skip` is called with the error if the registry cannot be
        compared.
        """
        self._registry = registry
        self._compare = compare
        self._skip = skip

    def differences(self) -> Sequence[str] | list[UnderlayError]:
        """What differs, or the one error that keeps the registry from being used.

        A registry file that cannot be opened is not compared: the lake may be read-only, which is not a fault.
        """
        try:
            self._registry.follow()
            return self._compare(self._registry)
        except UnderlayError as error:
            is_of_registry = isinstance(error, RegistryRefused) or error.place == self._registry.url
            is_closed_file = isinstance(error, Unavailable) and not is_server(self._registry.url)
            if is_of_registry and not is_closed_file:
                return [error]
            if self._skip is not None:
                self._skip(error)
            return []

    def restore(self) -> None:
        """Rebuild it from the store."""
        self._registry.restore()
