"""Finds the registry that a command is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from underlay.api.lake import connect
from underlay.cli.common.lake_choice import CONFIG_NAME, choose_lake, connect_chosen, show_place
from underlay.errors import NotFound
from underlay.registry.database.location import VARIABLE
from underlay.registry.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRegistry:
    """A registry, and the place of its lake as people read it."""

    registry: Registry
    lake: str


def chosen_registry(url: str | None, options: Sequence[str] | None, registry: str | None) -> ChosenRegistry:
    """The registry of the command's lake. Does not connect. Raises NotFound without a lake or a registry."""
    choice = choose_lake(url, options)
    choice = replace(choice, registry=registry or choice.registry)
    lake = connect_chosen(choice)
    place = show_place(lake.url)
    if lake.registry is None:
        raise NotFound(
            "this lake has no registry",
            place=place,
            hint=f"Name one by --registry, {VARIABLE} or {CONFIG_NAME}: sqlite:///path or postgresql://…. "
            "Nothing depends on it; commands are faster with one.",
        )
    # Without its registry, which must not be created beside a lake that does not exist.
    if not connect(choice.url, options=choice.options or None, registry="none").exists():
        raise NotFound("there is no lake here", place=place, hint='Make one with "underlay init".')
    return ChosenRegistry(registry=lake.registry, lake=place)
