"""The file with the rows of a kept result, opened where its statement may have been forgotten meanwhile."""

from __future__ import annotations

import pyarrow as pa

from underlay.server.common.problem import Problem


def map_rows(path: str) -> pa.MemoryMappedFile:
    """The file as memory. Raises Problem when it is gone; it does not say where it was."""
    try:
        return pa.memory_map(path)
    except FileNotFoundError:
        raise Problem(
            status=410,
            code="statement_gone",
            detail="the rows of the statement are no longer kept",
            hint="Run the statement again.",
        ) from None
