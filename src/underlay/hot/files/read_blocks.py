"""Reads blocks of a hot file, with the table's current columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from underlay.cache.same_file import KnownFile
from underlay.errors import SchemaMismatch
from underlay.index.entry import FileLayout
from underlay.index.intake.schema_match import Misfit, match_schema
from underlay.parquet.footer.checks import check_ranges, check_readable
from underlay.parquet.footer.footer import Footer
from underlay.scan.read.file_read import FileRead
from underlay.scan.read.file_shape import FileShape
from underlay.scan.read.file_stores import ObjectPlace, growing_files
from underlay.scan.read.footer_places import block_chunks
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.table_schema import TableSchema


def fitting_layout(footer: Footer, schema: TableSchema, place: str) -> FileLayout:
    """How the columns of a hot file are those of the table, by field id. Raises SchemaMismatch when they are not, as
    after a required column was added."""
    fit = match_schema(footer.schema, footer.created_by, schema, by="id", ignore_surplus=True)
    if isinstance(fit, Misfit):
        raise SchemaMismatch(
            "the rows of a hot partition do not fit the table any longer",
            place=place,
            found=" ".join(fit.reasons),
            hint="Give a new required column a default.",
        )
    return fit.layout


def read_blocks(
    path: Path, size_bytes: int, raw: bytes, schema: TableSchema, blocks: Sequence[int] | None = None
) -> pa.Table:
    """The rows of the blocks that the footer `raw` names, or of some of them."""
    footer = Footer.parse(raw)
    check_readable(footer)
    check_ranges(footer, size_bytes)
    shape = FileShape.of(fitting_layout(footer, schema, str(path)), schema, schema.fields)
    numbers = range(footer.row_group_count) if blocks is None else blocks
    found = FileRead(
        place=ObjectPlace(growing_files(), str(path).lstrip("/")),
        known=KnownFile(size_bytes, None, 0, 0),
        shape=shape,
        blocks=tuple(block_chunks(footer, list(numbers), shape)),
    ).read()
    return pa.Table.from_arrays(found.columns, schema=to_arrow(schema))
