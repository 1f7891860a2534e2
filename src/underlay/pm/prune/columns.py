"""A sidecar's columns as the pruner needs them: bounds, null counts and bloom filters, by path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from underlay.errors import SchemaMismatch
from underlay.parquet.footer.schema import Leaf, Schema
from underlay.parquet.write.bloom import contains_all, hash_values
from underlay.pm.format.blocks import bloom_places
from underlay.pm.format.footers import walk
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.format.statistics import null_counts
from underlay.pm.format.types import Tag, tag_of
from underlay.pm.format.values import SidecarColumn
from underlay.pm.prune.bounds import ordered_bounds
from underlay.pm.prune.domains import column_domain
from underlay.prune import BloomProbe, ColumnBounds, ColumnPath, Domain, Unordered
from underlay.runtime.locks import cached_property
from underlay.values.physical import Repetition


class SidecarColumns(Mapping[ColumnPath, ColumnBounds]):
    """The columns of a sidecar by path, read when they are asked for.

    Without `schema` a column is known by its top-level name, and a name that several leaves share proves nothing.
    `trust_appended_blooms`: the writer of appended versions wrote the filters correctly. QuestDB attaches them to the
    wrong row group when it merges into two at once, so by default filters of blocks that came after the first version
    are ignored. Raises SchemaMismatch when `schema` has other columns than the sidecar.
    """

    def __init__(self, sidecar: Sidecar, schema: Schema | None = None, *, trust_appended_blooms: bool = False) -> None:
        if schema is not None and len(schema.leaves) != sidecar.column_count:
            raise SchemaMismatch(
                "the schema has the wrong number of leaf columns for the sidecar",
                expected=sidecar.column_count,
                found=len(schema.leaves),
            )
        self._sidecar = sidecar
        self._schema = schema
        self._trust_appended_blooms = trust_appended_blooms
        self._read: dict[ColumnPath, ColumnBounds] = {}

    def __getitem__(self, path: ColumnPath) -> ColumnBounds:
        if path not in self._read:  # a conjunction asks once for each of its parts
            self._read[path] = self._column_bounds(path)
        return self._read[path]

    def _column_bounds(self, path: ColumnPath) -> ColumnBounds:
        index = self._indices[path]
        if index is None:
            return ColumnBounds.of(
                Unordered("several columns"), block_count=self._sidecar.row_group_count, is_nested=True
            )
        column = self._sidecar.columns[index]
        leaf = self._schema.leaves[index] if self._schema else None
        if leaf is not None and leaf.top.name != column.name:
            raise SchemaMismatch(
                "the schema has a different column here",
                place=f"column {index}",
                expected=column.name,
                found=leaf.top.name,
            )
        domain = column_domain(column, leaf, is_questdb=self._sidecar.sections.seq_txn is not None)
        return self._bounds(index, domain, is_nested=_is_nested(column, leaf))

    def __iter__(self) -> Iterator[ColumnPath]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)

    @cached_property
    def _indices(self) -> dict[ColumnPath, int | None]:
        """The leaf of every path; None for a group, and for a name that stands for several leaves."""
        found: dict[ColumnPath, int | None] = {}
        if self._schema is None:
            for index, column in enumerate(self._sidecar.columns):
                found[column.name,] = None if (column.name,) in found else index
            return found
        for leaf in self._schema.leaves:
            for length in range(1, len(leaf.path)):
                found[leaf.path[:length]] = None
            found[leaf.path] = None if leaf.path in found else leaf.index
        return found

    def _bounds(self, index: int, domain: Domain, *, is_nested: bool) -> ColumnBounds:
        sidecar = self._sidecar
        chunks = sidecar.column_chunks(index)
        nulls, has_nulls = null_counts(chunks)
        bounds: dict[str, Any] = {}
        if domain.is_ordered and not is_nested:
            low, high = ordered_bounds(sidecar, index, domain).values()
            bounds = {"minimum": low.values, "has_minimum": low.present}
            bounds |= {"maximum": high.values, "has_maximum": high.present}
        return ColumnBounds.of(
            domain,
            block_count=sidecar.row_group_count,
            null_count=nulls,
            has_null_count=has_nulls,
            value_count=chunks["num_values"],
            is_nested=is_nested,
            bloom=_bloom_probe(sidecar, index, self._is_bloom_trusted),
            **bounds,
        )

    @cached_property
    def _is_bloom_trusted(self) -> npt.NDArray[np.bool_]:
        offsets = self._sidecar.block_offsets
        if self._trust_appended_blooms or self._sidecar.footer.previous_size == 0:
            return np.ones(len(offsets), np.bool_)
        *_, first = walk(self._sidecar.data, self._sidecar.size)
        return offsets < first.offset


def _bloom_probe(sidecar: Sidecar, index: int, is_trusted: npt.NDArray[np.bool_]) -> BloomProbe | None:
    places = bloom_places(sidecar, index)
    begins = np.where(is_trusted, places.begins, -1)
    if not (begins >= 0).any():
        return None
    words = np.frombuffer(sidecar.data, "<u4", sidecar.size // 4)
    begin_words = np.where(begins < 0, -1, begins // 4)
    split_blocks = places.sizes // 32

    def probe(plain: bytes, blocks: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        return contains_all(words, begin_words[blocks], split_blocks[blocks], hash_values([plain])[0])

    return probe


def _is_nested(column: SidecarColumn, leaf: Leaf | None) -> bool:
    """Whether a row's value of the named column may be something other than one leaf value.

    Without the schema a leaf of a struct is recognised by more than one optional level, or by a required top-level
    field over an optional leaf.
    """
    if leaf is not None:
        return leaf.max_rep_level > 0
    if column.max_rep_level > 0 or column.max_def_level > 1:
        return True
    return (
        column.max_def_level == 1 and column.repetition is Repetition.REQUIRED and tag_of(column.type) is not Tag.SYMBOL
    )
