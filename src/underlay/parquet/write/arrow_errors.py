"""Converts pyarrow's errors on reading Parquet to Underlay's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from underlay.errors import Malformed, from_os_error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raises NotFound and Unavailable for what the system refuses, Malformed for what pyarrow cannot decode."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise from_os_error(error, str(path)) from error
        raise _malformed(path, error) from error
    except pa.ArrowException as error:
        raise _malformed(path, error) from error


def _malformed(path: Path, error: Exception) -> Malformed:
    return Malformed(f"this Parquet file cannot be read: {error}", place=str(path))
