"""`underlay tables` and `underlay show`: what a lake has, and what a table is."""

from __future__ import annotations

from underlay.api.info import Version, describe
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.cli.common.lake_choice import show_place
from underlay.cli.common.output import print_json, print_table, printable, say, show_bytes, show_count
from underlay.errors import Damaged
from underlay.index.root import Definition
from underlay.prune.predicates.operand import format_column
from underlay.schema.partitioning.transform import bind_partition, write_transform
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema


def list_tables(lake: Lake, *, long: bool, json: bool) -> None:
    """The tables by name: one request, and some more for each with `long`."""
    found = lake.tables()
    if not found and not json:
        say(f'{show_place(lake.url)}: no tables yet. Make one with "underlay create".')
        return
    if not long:
        if json:
            for table in found:
                print_json({"name": table.name, "folder": table.folder, "revision": table.revision})
        else:
            print_table(("table",), [(table.name,) for table in found])
        return
    facts = [(table, _newest_or_damage(lake, table.name)) for table in found]
    if json:
        for table, version in facts:
            known = version_json(version) if isinstance(version, Version) else {"damage": str(version)}
            print_json({"name": table.name, "folder": table.folder, "revision": table.revision, **known})
    else:
        print_table(
            ("table", "version", "committed", "rows", "files", "size"),
            [_long_row(table.name, one) for table, one in facts],
        )
    damages = [one for _, one in facts if isinstance(one, Damaged)]
    for damage in damages[1:]:
        say(f"note: {damage}")
    if damages:
        raise damages[0]


def _newest_or_damage(lake: Lake, name: str) -> Version | Damaged:
    """One table's damage is no reason not to list the others."""
    try:
        return _newest(lake.table(name))
    except Damaged as damage:
        return damage


def _long_row(name: str, found: Version | Damaged) -> tuple[object, ...]:
    if isinstance(found, Damaged):
        return name, "damaged", "", "", "", ""
    committed = f"{found.committed:%Y-%m-%d %H:%M:%S}"
    return name, found.version, committed, found.row_count, found.file_count, show_bytes(found.data_bytes)


def show_table(table: Table, *, json: bool) -> None:
    """Columns, how files are laid out, and what this version has."""
    if json:
        print_json(as_json(table))
        return
    facts, definition, schema = _newest(table), table.definition, from_record(table.definition.schema)
    print(f"{table.name}, version {facts.version} of {facts.committed:%Y-%m-%d %H:%M:%S} UTC")
    if definition.comment:
        print(printable(definition.comment))
    print()
    print_table(
        ("id", "column", "type", "null", "default", "comment"),
        [
            (field.id, field.name, field.type, "no" if field.is_required else "yes", field.default or "",
             field.comment or "")
            for field in schema.fields
        ],
    )  # fmt: skip
    print()
    layout = _layout(definition, schema)
    rows = [(name, ", ".join(values) or "none") for name, values in layout.items()]
    rows += [
        ("properties", ", ".join(f"{name}={value}" for name, value in definition.properties.items()) or "none"),
        ("rows", f"{facts.row_count:,}"),
        ("files", f"{facts.file_count:,}, {show_bytes(facts.data_bytes)}"),
        ("tags", ", ".join(f"{name} (version {version})" for name, version in sorted(table.tags.items())) or "none"),
        ("revision", table.revision),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name.ljust(width)}  {printable(value)}")


def as_json(table: Table) -> dict[str, object]:
    """All that `show` says."""
    definition = table.definition
    schema = from_record(definition.schema)
    return {
        "name": table.name,
        "revision": table.revision,
        **version_json(_newest(table)),
        "columns": [
            {
                "id": field.id,
                "name": field.name,
                "type": str(field.type),
                "is_required": field.is_required,
                "default": field.default,
                "comment": field.comment,
            }
            for field in schema.fields
        ],
        **_layout(definition, schema),
        "properties": definition.properties,
        "comment": definition.comment,
        "tags": table.tags,
    }


def version_json(version: Version) -> dict[str, object]:
    """A version for programs."""
    return {
        "version": version.version,
        "committed": version.committed.isoformat(),
        "operation": version.operation,
        "counts": version.counts,
        "rows": version.row_count,
        "files": version.file_count,
        "bytes": version.data_bytes,
        "writer": version.writer,
        "commit_id": version.commit_id,
        "run": version.run,
    }


def show_size(version: Version) -> str:
    """`12 rows in 2 files`."""
    return f"{show_count(version.row_count, 'row')} in {show_count(version.file_count, 'file')}"


def _newest(table: Table) -> Version:
    return describe(table.snapshot().root)


def _layout(definition: Definition, schema: TableSchema) -> dict[str, list[str]]:
    """Key, order and partitions as a user writes them."""

    def path(field: int) -> str:
        return format_column(schema.leaf_by_id[field].path)

    return {
        "key": [path(field) for field in definition.key],
        "sort_by": [
            f"{path(one.field)}{' desc' if one.descending else ''}{' nulls last' if one.nulls_last else ''}"
            for one in definition.sort_by
        ],
        "partition_by": [
            write_transform(schema, bind_partition(schema, one.field, one.transform, one.width))
            for one in definition.partition_by
        ],
    }
