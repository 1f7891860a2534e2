"""What a catalog says about tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """A table of a lake. `folder` is where its revisions lie, `revision` the active one."""

    name: str
    folder: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionInfo:
    """One physical incarnation of a table."""

    id: str
    is_active: bool
    created: datetime
