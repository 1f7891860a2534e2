"""Reports for people where a registry differs from the store: by table and kind, with a few examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from underlay.cli.common.output import printable, progress_bar, show_count
from underlay.registry.database.schema import METADATA
from underlay.registry.rebuild.difference import Difference
from underlay.registry.registry import Registry

_EXAMPLES = 3


def difference_lines(found: Sequence[Difference]) -> Iterator[str]:
    """A line for each table and kind, and some examples below it."""
    for table, kind, alike in grouped(found):
        yield f"{table}: {show_count(len(alike), 'row')} {kind}"
        for difference in alike[:_EXAMPLES]:
            yield f"  {show_row(difference)}"
        if len(alike) > _EXAMPLES:
            yield f"  … and {len(alike) - _EXAMPLES:,} more"


def difference_summaries(found: Sequence[Difference]) -> list[str]:
    """The same in one line each, with an example: `versions: 3 rows missing, such as revision …, version 7`."""
    return [
        f"{table}: {show_count(len(alike), 'row')} {kind}, such as {show_row(alike[0])}"
        for table, kind, alike in grouped(found)
    ]


def grouped(found: Sequence[Difference]) -> list[tuple[str, str, list[Difference]]]:
    """The differences by table and kind."""
    ordered = sorted(found, key=_place)  # stable: rows stay in the order of their keys
    return [(table, kind, list(alike)) for (table, kind), alike in groupby(ordered, key=_place)]


def show_row(difference: Difference) -> str:
    """`revision …, version 7: row_count is 3, should be 5`."""
    names = METADATA.tables[difference.table].primary_key.columns.keys()
    key = ", ".join(f"{name} {value}" for name, value in zip(names, difference.key, strict=True))
    fields = "; ".join(
        f"{name} is {_show(found)}, should be {_show(expected)}"
        for name, (found, expected) in difference.fields.items()
    )
    return printable(f"{key}: {fields}" if fields else key)


def difference_json(difference: Difference) -> dict[str, object]:
    """A row for programs; bytes in hexadecimal."""
    names = METADATA.tables[difference.table].primary_key.columns.keys()
    return {
        "table": difference.table,
        "kind": difference.kind,
        "key": dict(zip(names, difference.key, strict=True)),
        "fields": {
            name: {"found": _plain(found), "expected": _plain(expected)}
            for name, (found, expected) in difference.fields.items()
        },
    }


def _place(difference: Difference) -> tuple[str, str]:
    return difference.table, difference.kind.value


def _show(value: object) -> str:
    if isinstance(value, bytes):
        return show_count(len(value), "byte")
    return "nothing" if value is None else str(value)


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def compare_shown(registry: Registry) -> list[str]:
    """A text for each table and kind of difference. Shows the progress."""
    with progress_bar("comparing the registry") as tell:
        return difference_summaries(registry.differences(lambda at: tell(at.revisions_done, at.revision_count)))
