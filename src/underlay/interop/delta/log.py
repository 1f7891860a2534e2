"""The log of a table's exports to Delta: one JSON object for each, put only if absent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from underlay.errors import NotFound
from underlay.interop.iceberg.columns.types import Json
from underlay.runtime.threads import side_by_side
from underlay.store.store import Outcome, Store

NONE = -1
"""The number before the first export."""
_ENTRY = re.compile(r"([0-9]{20})\.json")
OURS = "underlay"
"""The member of an entry's commitInfo that says what was exported."""


@dataclass(slots=True, kw_only=True)
class ExportState:
    """What the log says so far."""

    number: int
    exported: Mapping[str, Json] = field(default_factory=dict)
    """What the last entry exported; empty if somebody else wrote it."""
    protocol: Json | None = None
    metadata: Json | None = None
    files: dict[str, Json] = field(default_factory=dict)
    """What added each file, by path."""

    def apply(self, actions: Iterable[Json]) -> None:
        """Add an entry."""
        self.exported = {}
        for action in actions:
            for kind, value in action.items():
                match kind:
                    case "commitInfo":
                        self.exported = value.get(OURS) or {}
                    case "protocol":
                        self.protocol = value
                    case "metaData":
                        self.metadata = value
                    case "add":
                        self.files[value["path"]] = value
                    case "remove":
                        self.files.pop(value["path"], None)

    def after(self, actions: Iterable[Json]) -> ExportState:
        """The state after one more entry."""
        found = ExportState(
            number=self.number + 1, protocol=self.protocol, metadata=self.metadata, files=dict(self.files)
        )
        found.apply(actions)
        return found


class ExportLog:
    """The log in `folder`."""

    def __init__(self, store: Store, folder: str) -> None:
        self.store = store
        self.folder = folder

    def key(self, number: int) -> str:
        """An entry."""
        return f"{self.folder}/{number:020}.json"

    def numbers(self) -> list[tuple[int, datetime]]:
        """All entries, with when they were put. One listing."""
        found = []
        for one in self.store.list_objects(self.folder):
            match = _ENTRY.fullmatch(one.key.rpartition("/")[2])
            if match is not None:
                found.append((int(match[1]), one.modified))
        return found

    def newest(self) -> int:
        """The number of the newest entry, `NONE` without one."""
        return max((number for number, _ in self.numbers()), default=NONE)

    def exported_by(self, number: int) -> Mapping[str, Json]:
        """What an entry says that it exported; empty if it was not written by Underlay, or is gone."""
        for action in self._actions(number):
            found = action.get("commitInfo", {}).get(OURS)
            if isinstance(found, dict):
                return found
        return {}

    def replay(self, begin: ExportState | None = None) -> ExportState:
        """The state after the newest entry, from that of a checkpoint on."""
        state = begin or ExportState(number=NONE)
        last = self.newest()
        if begin is not None:
            state.apply(action for action in self._actions(begin.number) if "commitInfo" in action)
        numbers = list(range(state.number + 1, last + 1))
        for number, actions in zip(
            numbers, side_by_side(self._read, numbers, self.store.parallel_requests), strict=True
        ):
            state.apply(actions)
            state.number = number
        return state

    def _read(self, number: int) -> list[Json]:
        return list(self._actions(number))

    def _actions(self, number: int) -> Iterator[Json]:
        try:
            text = bytes(self.store.get(self.key(number))[0]).decode()
            for line in text.splitlines():
                if line:
                    yield json.loads(line)
        except (NotFound, ValueError):
            return

    def publish(self, number: int, actions: Sequence[Json]) -> bool:
        """Put an entry unless there is one of this number; whether it is ours that is there now."""
        data = "".join(f"{json.dumps(action)}\n" for action in actions).encode()
        if self.store.create(self.key(number), data) is Outcome.DONE:
            return True
        try:
            return bytes(self.store.get(self.key(number))[0]) == data
        except NotFound:
            return False

    def held_versions(self, revision: str, now: datetime, reader_age: timedelta) -> dict[str, int]:
        """Versions that must not expire: of the newest entry, and of those that were replaced less than the reader age
        ago."""
        every = self.numbers()
        if not every:
            return {}
        kept = [one[0] for one, after in pairwise(every) if now - after[1] <= reader_age] + [every[-1][0]]
        found = side_by_side(self.exported_by, kept, self.store.parallel_requests)
        return {
            f"{self.folder}/{number}": int(one["version"])
            for number, one in zip(kept, found, strict=True)
            if one.get("revision") == revision
        }
