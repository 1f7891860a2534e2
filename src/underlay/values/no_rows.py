"""No rows of any schema: what Arrow makes by itself fails for uuids inside lists, structs and maps."""

from __future__ import annotations

import pyarrow as pa


def no_rows(schema: pa.Schema) -> pa.Table:
    """A table without rows."""
    return pa.Table.from_batches([empty_batch(schema)])


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
