"""Checks that a footer must pass before its file is read or indexed."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from underlay.errors import Malformed, SchemaMismatch, Truncated, UnderlayError, Unsupported
from underlay.parquet.footer.chunks import IndexedChunks
from underlay.parquet.footer.schema import Schema


class HasChunks(Protocol):
    """A footer, or a stack of them."""

    @property
    def schema(self) -> Schema:
        """What the columns are."""

    @property
    def chunks(self) -> IndexedChunks:
        """The column chunks [row groups, columns]."""


def check_chunks(footer: HasChunks) -> None:
    """Refuse a footer whose chunks do not fit its schema, lie in another file, or lack their metadata."""
    chunks = footer.chunks
    _refuse(Unsupported("a column chunk lies in another file"), chunks.has_file_path)
    _refuse(Malformed("a column chunk has no metadata"), ~chunks.has_meta_data & ~chunks.has_crypto)
    types = np.array([leaf.physical_type for leaf in footer.schema.leaves], np.int64)
    differs = chunks.has_meta_data & (chunks.physical_type != types)
    _refuse(SchemaMismatch("a column chunk has another type than the schema"), differs)


def check_readable(footer: HasChunks) -> None:
    """`check_chunks`, and refuse encrypted columns."""
    _refuse(Unsupported("a column chunk is encrypted"), footer.chunks.has_crypto)
    check_chunks(footer)


def check_ranges(footer: HasChunks, file_size: int | npt.NDArray[np.int64]) -> None:
    """Refuse a footer with chunks, indexes or bloom filters that are not inside a file of `file_size` bytes, or with
    chunks that have values but no bytes.

    A chunk begins at its dictionary page if that has an offset above 0, else at its first data page. Offsets of 0 and
    below mean that there is no dictionary, index or filter. For a stack, `file_size` is a column [row groups, 1].
    """
    chunks = footer.chunks
    _refuse(Malformed("a column chunk has a negative offset"), chunks.data_page_offset < 0)
    is_empty = (chunks.num_values > 0) & (chunks.total_compressed_bytes == 0)
    _refuse(Malformed("a column chunk has values and no bytes"), is_empty)
    has_dictionary = chunks.has_dictionary_page_offset & (chunks.dictionary_page_offset > 0)
    begin = np.where(has_dictionary, chunks.dictionary_page_offset, chunks.data_page_offset)
    _check_inside("a column chunk", begin, chunks.total_compressed_bytes, file_size)
    for what, offset, length in (
        ("an offset index", chunks.offset_index_offset, chunks.offset_index_length),
        ("a column index", chunks.column_index_offset, chunks.column_index_length),
        ("a bloom filter", chunks.bloom_filter_offset, chunks.bloom_filter_length),
    ):
        _check_inside(what, np.maximum(offset, 0), np.where(offset > 0, length, 0), file_size)


def _check_inside(
    what: str,
    begin: npt.NDArray[np.int64],
    length: npt.NDArray[np.int64],
    file_size: int | npt.NDArray[np.int64],
) -> None:
    _refuse(Malformed(f"{what} has a negative offset or length"), (begin < 0) | (length < 0))
    error = Truncated(
        f"{what} reaches past the end of the file", expected=f"at most {np.max(file_size, initial=0)} bytes"
    )
    _refuse(error, (length > file_size) | (begin > file_size - np.minimum(length, file_size)))


def _refuse(error: UnderlayError, wrong: npt.NDArray[np.bool_]) -> None:
    """Raise `error`, with the first place where `wrong` is true, if there is one."""
    if wrong.any():
        row_group, column = np.unravel_index(int(wrong.argmax()), wrong.shape)
        raise error.at(f"row group {int(row_group)}, column {int(column)}")
