"""The result of a change of rows, in numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What a verb did. A dry run gives the same numbers, with the version that it read.

    `is_repeat`: its token was committed before, in this version, and nothing was changed now.
    """

    version: int
    rows_matched: int = 0
    """Rows of the table, or pairs, that the condition or the key matched."""
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    blocks_read: int = 0
    """Blocks that were read."""
    blocks_rewritten: int = 0
    """Blocks that were rewritten because many of their rows changed."""
    blocks_total: int = 0
    bytes_read: int = 0
    """Bytes of the chunks that were read."""
    bytes_written: int = 0
    """Bytes of new data files."""
    is_repeat: bool = False
