"""Deleted rows of an Iceberg table: Parquet files of paths and positions, and deletion vectors in Puffin files."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from underlay.errors import Malformed, NotFound
from underlay.index import deletion_vectors as bitmaps
from underlay.interop.from_iceberg.manifests import POSITION_DELETES, IcebergFile, place_of, read_object
from underlay.interop.imports.framed_vectors import unpack_framed
from underlay.runtime.threads import side_by_side
from underlay.scan.read.file_stores import FileStores
from underlay.values.ranges import ByteRange

_READERS = 4
_COLUMNS = ["file_path", "pos"]


class IcebergDeletes:
    """The deletes of a snapshot, found by data file."""

    def __init__(self, files: Sequence[IcebergFile], stores: FileStores) -> None:
        deletes = [one for one in files if one.content == POSITION_DELETES]
        self._stores = stores
        self._vectors = {one.referenced: one for one in deletes if one.format == "PUFFIN" and one.referenced}
        self._positions = [one for one in deletes if one.format != "PUFFIN"]

    def identity(self, data: IcebergFile) -> str | None:
        """What deletes a file may have; None for none."""
        vector = self._vectors.get(data.path)
        if vector is not None:
            return f"{vector.path}@{vector.offset}"
        return ",".join(sorted(one.path for one in self._of(data))) or None

    def read(self, wanted: Mapping[str, IcebergFile]) -> dict[str, bytes]:
        """Deleted rows by the keys of `wanted`; nothing for a file without any. Raises Malformed, NotFound."""
        found: dict[str, bytes] = {}
        by_file: dict[str, list[str]] = {}
        for key, data in wanted.items():
            vector = self._vectors.get(data.path)
            if vector is not None:
                found[key] = self._vector(vector)
                continue
            for one in self._of(data):
                by_file.setdefault(one.path, []).append(key)
        keys = {data.path: key for key, data in wanted.items()}
        positions: dict[str, list[np.ndarray]] = {}
        for some in side_by_side(lambda path: _positions(path, self._stores, keys), list(by_file), _READERS):
            path, rows = some
            for key in by_file[path]:
                if key in rows:
                    positions.setdefault(key, []).append(rows[key])
        return found | {key: bitmaps.pack(np.concatenate(rows)) for key, rows in positions.items()}

    def _of(self, data: IcebergFile) -> list[IcebergFile]:
        """The files of positions that may name a data file: those of its partition that are not older."""
        return [
            one
            for one in self._positions
            if one.sequence >= data.sequence
            and (one.spec, one.partition) == (data.spec, data.partition)
            and one.referenced in (None, data.path)
        ]

    def _vector(self, vector: IcebergFile) -> bytes:
        place = place_of(vector.path, self._stores)
        if vector.offset is None or vector.length is None:
            raise Malformed("a deletion vector has no place in its file", place=vector.path)
        where = ByteRange(vector.offset, vector.offset + vector.length)
        try:
            (data,) = place.store.get_ranges(place.key, [where])
        except NotFound as error:
            error.problem = f"a deletion vector of the source is missing: {error.problem}"
            raise
        return unpack_framed(bytes(data), vector.record_count, vector.path)


def _positions(path: str, stores: FileStores, keys: Mapping[str, str]) -> tuple[str, dict[str, np.ndarray]]:
    """The rows that a file deletes, by the keys of the data files that it names."""
    data = read_object(path, stores)
    try:
        rows = pq.read_table(io.BytesIO(data), columns=_COLUMNS, partitioning=None)
        named = rows.column("file_path").combine_chunks().cast(pa.string()).dictionary_encode()
        numbers = rows.column("pos").combine_chunks().cast(pa.int64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowException, KeyError) as error:
        raise Malformed(f"not a file of position deletes: {error}", place=path) from error
    if isinstance(named, pa.ChunkedArray):
        named = named.combine_chunks()
    codes = named.indices.to_numpy(zero_copy_only=False)
    found = {}
    for code, name in enumerate(named.dictionary.to_pylist()):
        key = keys.get(str(name))
        if key is not None:
            found[key] = numbers[codes == code]
    return path, found
