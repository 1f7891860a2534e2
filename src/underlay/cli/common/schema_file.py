"""Columns as text, given to a command or in a file."""

from __future__ import annotations

from pathlib import Path

from underlay.errors import InvalidRequest, from_os_error
from underlay.schema.convert.ddl import parse_ddl
from underlay.schema.table_schema import TableSchema


def read_columns(schema: str | None, schema_file: Path | None) -> TableSchema | None:
    """The columns declared by the text, or by the file's text; None without either. Raises InvalidRequest."""
    if schema is not None:
        return parse_ddl(schema)
    if schema_file is None:
        return None
    try:
        return parse_ddl(schema_file.read_text())
    except OSError as error:
        raise from_os_error(error, str(schema_file)) from None
    except UnicodeDecodeError:
        raise InvalidRequest("the file is not UTF-8 text", place=str(schema_file)) from None
    except InvalidRequest as error:
        raise error.at(str(schema_file)) from None
