"""`underlay tables`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from underlay.cli.common.lake_choice import open_to_read, show_place
from underlay.cli.common.output import print_json, print_table, say, show_bytes
from underlay.errors import Damaged

if TYPE_CHECKING:
    from underlay.api.lake import Lake
    from underlay.api.opened.info import TableInfo


def list_tables(*, lake: str | None, option: Sequence[str] | None, json: bool, long: bool = False) -> None:
    """List the tables of a lake. `long` opens each of them."""
    opened = open_to_read(lake, option, is_listing=not long)
    found = opened.tables()
    if not found and not json:
        say(f'{show_place(opened.url)}: no tables yet. Create one with "underlay create".')
    elif long:
        _list_long(opened, found, json=json)
    elif json:
        for table in found:
            print_json({"name": table.name, "folder": table.folder, "revision": table.revision})
    else:
        print_table(("table",), [(table.name,) for table in found])


def _list_long(lake: Lake, found: Sequence[TableInfo], *, json: bool) -> None:
    """Open each table. A damaged one does not keep the others from being listed."""
    from underlay.cli.tables.description import newest_of, version_json

    damages: list[Damaged] = []
    rows: list[tuple[object, ...]] = []
    for table in found:
        known = {"name": table.name, "folder": table.folder, "revision": table.revision}
        try:
            newest = newest_of(lake.table(table.name))
        except Damaged as damage:
            damages.append(damage)
            rows.append((table.name, "damaged", "", "", "", ""))
            facts: dict[str, object] = {"damage": str(damage)}
        else:
            committed, size = f"{newest.committed:%Y-%m-%d %H:%M:%S}", show_bytes(newest.data_bytes)
            rows.append((table.name, newest.version, committed, newest.row_count, newest.file_count, size))
            facts = version_json(newest)
        if json:
            print_json({**known, **facts})
    if not json:
        print_table(("table", "version", "committed", "rows", "files", "size"), rows)
    for other in damages[1:]:
        say(f"note: {other}")
    if damages:
        raise damages[0]
