"""What a sweep found and deleted, as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

Progress = Callable[[int, int], None]
"""Called with the number of objects examined or deleted, and of all as far as that is known."""
EXAMPLES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptFolder:
    """One revision, or a folder of the lake itself."""

    folder: str
    table: str | None
    """The table whose active revision it is; None for anything else."""
    reason: str
    """Why objects are deleted: `unreferenced`, `dropped`, `replaced`, `never named`, `left behind`, `old exports`,
    `exports of no table`."""
    version: int | None
    """The commit that forbids the use of the deleted objects; None if none was needed."""
    horizon: datetime
    """Objects put later than this, by the store's clock, are kept."""
    listed_count: int
    object_count: int
    size_bytes: int
    kinds: dict[str, int]
    """The number of objects of each kind."""
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep deleted, or would delete."""

    is_dry_run: bool
    folders: tuple[SweptFolder, ...]
    """Folders with objects to delete."""
    listed_count: int
    """The number of objects examined."""
    object_count: int
    size_bytes: int
    examples: tuple[str, ...]


def summed(folders: Iterable[SweptFolder], *, is_dry_run: bool) -> Swept:
    """All of them together."""
    every = tuple(folders)
    return Swept(
        is_dry_run=is_dry_run,
        folders=tuple(one for one in every if one.object_count),
        listed_count=sum(one.listed_count for one in every),
        object_count=sum(one.object_count for one in every),
        size_bytes=sum(one.size_bytes for one in every),
        examples=tuple(key for one in every for key in one.examples)[:EXAMPLES],
    )
