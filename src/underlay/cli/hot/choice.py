"""Opens the lake and the hot tables that a command works on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from underlay.cli.common.lake_choice import choose_lake, connect_chosen
from underlay.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from underlay.api.lake import Lake
    from underlay.hot.read.snapshot import HotReader, PinnedHot


def open_hot_lake(url: str | None, options: Sequence[str] | None, hot: str | None) -> tuple[Lake, HotReader]:
    """The lake, and its directory of hot partitions. Raises NotFound when none is named."""
    choice = choose_lake(url, options)
    lake = connect_chosen(choice if hot is None else replace(choice, hot=hot))
    reader = lake._context.hot
    if reader is None:
        raise NotFound(
            "no directory of hot partitions was given",
            hint='Give --hot, set UNDERLAY_HOT, or write hot = "data/hot" in underlay.toml.',
        )
    if not lake.exists():
        raise NotFound("there is no lake here", place=lake.url, hint='Create one with "underlay init".')
    return lake, reader


def pinned_tables(lake: Lake, reader: HotReader, name: str | None) -> Iterator[tuple[str, PinnedHot]]:
    """The hot tables of one table of the lake, or of all that have some."""
    known = [one for one in lake.tables() if name in (None, one.name)]
    if name is not None and not known:
        lake.table(name)  # raises TableNotFound
    for one in known:
        found = reader.pin(one.folder)
        if found is not None:
            yield one.name, found


def txn_folder(path: Path) -> Path:
    """The directory of a `_txn`, which may be given itself. Raises NotFound."""
    folder = path.parent if path.name == "_txn" else path
    if not (folder / "_txn").exists():
        raise NotFound(
            "there is no _txn here",
            place=str(path),
            hint="Name the directory of a hot table, or of a table of QuestDB.",
        )
    if not folder.is_dir():
        raise InvalidRequest("not a directory", found=str(path))
    return folder.resolve()
