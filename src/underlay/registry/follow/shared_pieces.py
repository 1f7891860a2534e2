"""The table `footer_cache`: bytes of footers, sidecars and segments that one machine fetched, for all others."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deflate import crc32

from underlay.values.ranges import ByteRange

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from underlay.registry.follow.ask import Asking
    from underlay.registry.follow.follower import Follower

MOST_BYTES = 1 << 20
"""Longer pieces are not kept: reading them from the store is as fast."""
BOUND_BYTES = 256 << 20
"""About the size limit of the table."""
_LOOK_AFTER = BOUND_BYTES // 16


class FooterCache:
    """A cache that machines without a local copy ask before they ask the store."""

    def __init__(self, asking: Asking, follower: Follower) -> None:
        self._asking = asking
        self._follower = follower
        self._unseen_bytes = _LOOK_AFTER

    def read(self, place: str, version: str, ranges: Sequence[ByteRange]) -> Sequence[memoryview | None]:
        """The bytes of each of the object's ranges that is cached. One statement."""
        found = self._asking.ask(lambda connection: _select(connection, place, version, ranges))
        self._follower.poke()
        known = found or {}
        return [known.get((wanted.begin, wanted.end)) for wanted in ranges]

    def keep(self, place: str, version: str, pieces: Sequence[tuple[ByteRange, memoryview]]) -> None:
        """Write the pieces, in the background."""
        now = time.time_ns() // 1000
        rows = [
            {
                "object_key": place,
                "state": version,
                "first_byte": wanted.begin,
                "end_byte": wanted.end,
                "crc": crc32(piece),
                "data": bytes(piece),
                "added_us": now,
            }
            for wanted, piece in pieces
            if len(piece) <= MOST_BYTES
        ]
        if rows:
            size = sum(len(row["data"]) for row in rows if isinstance(row["data"], bytes))
            self._follower.add(lambda: lambda connection: self._insert(connection, rows, size))

    def _insert(self, connection: Connection, rows: list[dict[str, object]], size: int) -> None:
        from underlay.registry.database.schema import FOOTER_CACHE
        from underlay.registry.mirror.apply import upsert_rows

        upsert_rows(connection, FOOTER_CACHE, rows)
        self._unseen_bytes += size
        if self._unseen_bytes > _LOOK_AFTER:
            self._unseen_bytes = 0
            _make_room(connection)


def _select(
    connection: Connection, place: str, version: str, ranges: Sequence[ByteRange]
) -> dict[tuple[int, int], memoryview]:
    from sqlalchemy import select

    from underlay.registry.database.schema import FOOTER_CACHE

    columns = FOOTER_CACHE.c
    wanted = {(one.begin, one.end) for one in ranges}
    rows = connection.execute(
        select(columns.first_byte, columns.end_byte, columns.crc, columns.data).where(
            columns.object_key == place,
            columns.state == version,
            columns.first_byte.in_(sorted({begin for begin, _ in wanted})),
        )
    )
    return {
        (begin, end): memoryview(data)
        for begin, end, crc, data in rows
        if (begin, end) in wanted and len(data) == end - begin and crc32(data) == crc
    }


def _make_room(connection: Connection) -> None:
    """Delete the oldest pieces until the size is within the bound."""
    from sqlalchemy import delete, func, select

    from underlay.registry.database.schema import FOOTER_CACHE

    columns = FOOTER_CACHE.c
    total = connection.execute(select(func.coalesce(func.sum(columns.end_byte - columns.first_byte), 0))).scalar_one()
    surplus = int(total) - BOUND_BYTES * 7 // 8 if total > BOUND_BYTES else 0
    if surplus <= 0:
        return
    oldest = select(columns.added_us, (columns.end_byte - columns.first_byte).label("size")).order_by(columns.added_us)
    for added_us, size in connection.execute(oldest):
        surplus -= size
        if surplus <= 0:
            connection.execute(delete(FOOTER_CACHE).where(columns.added_us <= added_us))
            return
