"""Creates the table of an ingest if it is missing, with given columns or those of the first sources."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from underlay.change.define.define import define, read_schema
from underlay.errors import NotFound, TableExists, UnderlayError
from underlay.index.catalog import check_free, split_name
from underlay.ingest.exactly_once.replaced import SOURCE_COLUMN
from underlay.ingest.rows.path_columns import infer_path_columns
from underlay.ingest.source import file_format as file_kind
from underlay.ingest.source.pinned import open_pinned
from underlay.ingest.source.source import Source
from underlay.ingest.work.execute import FAULTS
from underlay.ingest.work.infer_schema import combine, infer_one
from underlay.ingest.work.settings import Settings
from underlay.runtime.threads import side_by_side
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, Scalar, TypeKind
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import create

SAMPLES = 20
"""At most this many sources are sampled for columns."""
_READERS = 8

Looked = tuple[str, file_kind.FileFormat, pa.Schema]
"""A source's name, its format, and the columns that its beginning shows."""


def exists(lake: LakeCatalog, name: str) -> bool:
    """Whether the lake exists and has the table. Raises InvalidRequest for an invalid table name, and TableExists for a
    name that differs from an existing table's only in case.
    """
    split_name(name)
    try:
        catalog = lake.catalog()
    except NotFound:
        return False
    if name in catalog.tables:
        return True
    check_free(catalog, name)
    return False


def make_table(lake: LakeCatalog, name: str, found: Sequence[Source], settings: Settings) -> bool:
    """Create the table. False when another process was first; then its columns are the table's."""
    definition = define(columns_for(found, settings))
    lake.initialise()
    try:
        create(lake, name, definition)
    except TableExists:
        if name in lake.catalog().tables:
            return False
        raise
    return True


def columns_for(found: Sequence[Source], settings: Settings) -> TableSchema:
    """The columns of a table for these sources, as given or as found in some of them.

    Sources that cannot be read are left out; if none can be read, the first one's error is raised. Raises
    SchemaMismatch when no type can hold a column of two sources.
    """
    schema = read_schema(settings.columns if settings.columns is not None else _infer(found, settings))
    if SOURCE_COLUMN in schema.names or not (settings.has_source_column or settings.changed == "replace"):
        return schema
    own = Field(id=schema.last_id + 1, name=SOURCE_COLUMN, type=Scalar(TypeKind.STRING))
    return TableSchema(fields=(*schema.fields, own), last_id=own.id)


def _infer(found: Sequence[Source], settings: Settings) -> pa.Schema:
    looked = look_into_some(found, settings)
    seen = [one for one in looked if not isinstance(one, UnderlayError)]
    problems = [one for one in looked if isinstance(one, UnderlayError)]
    if not seen and problems:
        raise problems[0]
    own = combine(seen)
    return infer_path_columns((one.uri for one in found), own) if settings.hive else own


def look_into_some(found: Sequence[Source], settings: Settings) -> list[Looked | UnderlayError]:
    """Look into some of the sources in parallel: their names, kinds and columns, or errors."""

    def look(one: Source) -> Looked | UnderlayError:
        try:
            return look_into(one, settings)
        except FAULTS as error:
            return error

    return side_by_side(look, spread(found, SAMPLES), _READERS)


def look_into(found: Source, settings: Settings) -> Looked:
    """A source's name, kind and columns, by its beginning."""
    kind = settings.kind or file_kind.kind_of(found.uri)
    with open_pinned(found, settings.store_options) as file:
        return found.uri, kind, infer_one(found.uri, kind, file, settings.dialect)


def spread(found: Sequence[Source], most: int) -> list[Source]:
    """At most `most` of the sources, evenly spread."""
    if len(found) <= most:
        return list(found)
    return [found[at * (len(found) - 1) // (most - 1)] for at in range(most)]
