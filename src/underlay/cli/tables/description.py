"""`underlay show`, and tables and versions described for people and for programs."""

from __future__ import annotations

from underlay.api.opened.info import Version, describe
from underlay.api.opened.layout import layout_texts
from underlay.api.table import Table
from underlay.cli.common.output import print_json, print_table, printable, show_bytes, show_count
from underlay.schema.record import from_record


def show_table(table: Table, *, json: bool) -> None:
    """Print columns, layout, and the contents of this version."""
    if json:
        print_json(as_json(table))
        return
    facts, definition, schema = newest_of(table), table.definition, from_record(table.definition.schema)
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
    layout = layout_texts(definition, schema)
    rows = [(name, ", ".join(values) or "none") for name, values in layout.items()]
    rows += [
        *(("check", f"{name}: {text}") for name, text in definition.checks.items()),
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
    """All that `show` prints, as JSON."""
    definition = table.definition
    schema = from_record(definition.schema)
    return {
        "name": table.name,
        "revision": table.revision,
        **version_json(newest_of(table)),
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
        **layout_texts(definition, schema),
        "checks": definition.checks,
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


def newest_of(table: Table) -> Version:
    """The newest version of a table."""
    return describe(table.snapshot().root)
