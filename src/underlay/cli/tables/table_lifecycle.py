"""`underlay rename` and `underlay drop`."""

from __future__ import annotations

from underlay.api.info import describe
from underlay.api.lake import Lake
from underlay.cli.common.output import need_yes, print_json, say, show_bytes
from underlay.cli.common.table_choice import open_newest, with_near_names
from underlay.cli.tables.table_show import show_size, version_json
from underlay.errors import TableNotFound


def rename_table(lake: Lake, name: str, new_name: str, *, json: bool) -> None:
    """Another name for a table."""
    try:
        lake.rename_table(name, new_name)
    except TableNotFound as error:
        raise with_near_names(error, lake, name) from None
    if json:
        print_json({"table": new_name, "was": name})
    else:
        say(f"{new_name}: the new name of {name}")


def drop_table(lake: Lake, name: str, *, yes: bool, json: bool) -> None:
    """The table goes; says what that means unless told to do it."""
    table = open_newest(lake, name)
    now = describe(table.snapshot().root)
    size = f"{show_size(now)}, {show_bytes(now.data_bytes)}"
    if not yes:
        if json:
            print_json({"table": name, "is_done": False, **version_json(now)})
        need_yes(
            f"{name}: would be gone with all its versions, 0 to {now.version}, and its tags; the newest has {size}."
            " Its files would stay in the store, and registered ones where they are"
        )
    lake.drop_table(name)
    if json:
        print_json({"table": name, "is_done": True, **version_json(now)})
    else:
        say(f"{name}: dropped, {size}; its files are still in the store")
