"""The registry as `underlay verify` looks at it."""

from __future__ import annotations

from underlay.cli.output import progress_bar, say
from underlay.cli.registry_difference import difference_summaries
from underlay.errors import RegistryRefused, UnderlayError
from underlay.registry.registry import Registry


class VerifiedRegistry:
    """Compares a lake's registry with the store, and restores it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def differences(self) -> list[str] | list[UnderlayError]:
        """What it says that the store does not, a text for each table and kind, or the one error for which it is not
        used. What it merely lacks is applied first, as every command does that reads a table."""
        try:
            self._registry.follow()
            with progress_bar("comparing the registry") as tell:
                found = self._registry.differences(lambda at: tell(at.revisions_done, at.revision_count))
        except UnderlayError as error:
            is_of_registry = isinstance(error, RegistryRefused) or error.place == self._registry.url
            if not is_of_registry:
                say(f"note: the registry was not compared with the store: {error}")
                return []
            return [error]
        return difference_summaries(found)

    def restore(self) -> None:
        """Rebuild it from the store."""
        self._registry.restore()
