"""Pieces of a segment as bytes, and back: arrays as one record batch in an uncompressed Arrow IPC stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from deflate import crc32
from numpy.typing import NDArray

from underlay.errors import ChecksumMismatch, InvalidRequest, Malformed, Truncated
from underlay.index.sealed_json import UNDECODED
from underlay.index.segment.arrays import I64, ChunkPlaces, ChunkStatistics, FileArrays, Shape
from underlay.index.segment.directory import Piece
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.types import Scalar, parse_scalar

AnyArray: TypeAlias = "pa.Array[Any]"  # Any: of every type
Column: TypeAlias = "AnyArray | NDArray[Any]"  # Any: of every number type

_SHAPES = b"shapes"
_OPTIONS = pa.ipc.IpcWriteOptions(compression=None, use_threads=False)
_FILE_TYPES: dict[str, pa.DataType] = {
    "locations": pa.string(),
    "size_bytes": pa.int64(),
    "etags": pa.string(),
    "footer_bytes": pa.int64(),
    "footer_crcs": pa.int64(),
    "layouts": pa.string(),
    "partitions": pa.list_(pa.binary()),
    "deletes": pa.binary(),
    "deleted_rows": pa.int64(),
    "sidecar_bytes": pa.int64(),
    "sidecar_crcs": pa.int64(),
    "block_counts": pa.int64(),
    "shape_ids": pa.int32(),
}
_CONSTANTS = "constants"
"""A column that is present when a file has constants."""
_SPECS = "specs"
"""A column that is present when a file has a partition spec other than the first."""
_ARROW_COLUMNS = ("locations", "etags", "layouts", "partitions", "deletes", _CONSTANTS)
_BOUND_TYPES: dict[Storage, pa.DataType] = {
    Storage.INT: pa.int64(),
    Storage.UINT: pa.uint64(),
    Storage.FLOAT: pa.float64(),
    Storage.BYTES: pa.binary(),
}
_SHAPES_DECODER = msgspec.msgpack.Decoder(tuple[Shape, ...])


def encode_files(files: FileArrays) -> bytes:
    """The piece of files."""
    columns = {name: getattr(files, name) for name in _FILE_TYPES}
    if files.constants.null_count < files.file_count:
        columns[_CONSTANTS] = files.constants
    if files.specs.any():
        columns[_SPECS] = files.specs
    return _encode(columns, {_SHAPES: msgspec.msgpack.encode(files.shapes)})


def encode_blocks(block_rows: I64) -> bytes:
    """The piece of blocks."""
    return _encode({"rows": block_rows})


def encode_statistics(statistics: ChunkStatistics) -> bytes:
    """The piece of one leaf's statistics."""
    bounds: dict[str, Column] = {}
    if statistics.low is not None and statistics.high is not None:
        bounds = {"low": statistics.low, "high": statistics.high}
    return _encode({**bounds, "null_counts": statistics.null_counts, "flags": statistics.flags})


def encode_places(places: ChunkPlaces) -> bytes:
    """The piece of one leaf's places."""
    columns: dict[str, Column] = {
        "begins": places.begins,
        "sizes": places.sizes,
        "codecs": places.codecs,
    }
    if places.value_counts is not None:
        columns["value_counts"] = places.value_counts
    return _encode(columns)


def decode_files(data: memoryview, piece: Piece, file_count: int, block_count: int) -> FileArrays:
    """The files. Raises Damaged."""
    batch = _decode(data, piece, file_count, _FILE_TYPES)
    columns: dict[str, Any] = {  # Any: by name, see _FILE_TYPES
        name: column if name in _ARROW_COLUMNS else column.to_numpy()
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    try:
        shapes = _SHAPES_DECODER.decode((batch.schema.metadata or {}).get(_SHAPES, b""))
    except UNDECODED as error:
        raise Malformed(f"not the shapes of files: {error}", place=piece.name) from error
    constants = columns.get(_CONSTANTS, pa.nulls(file_count, pa.binary()))
    if constants.type != pa.binary():
        raise Malformed("the constants of files are not bytes", place=piece.name, found=constants.type)
    specs = columns.get(_SPECS, np.zeros(file_count, np.int64))
    if specs.dtype != np.int64:
        raise Malformed("the partition specs of files are not integers", place=piece.name, found=specs.dtype)
    known = {name: columns[name] for name in _FILE_TYPES}
    files = FileArrays(shapes=shapes, constants=constants, specs=specs, **known)
    ids, counts = files.shape_ids, files.block_counts
    if file_count and (ids.min() < 0 or ids.max() >= len(shapes) or counts.min() < 0):
        raise Malformed("a file has an unknown shape or a negative number of blocks", place=piece.name)
    if int(counts.sum()) != block_count:
        raise Malformed("the wrong number of blocks", place=piece.name, expected=block_count, found=int(counts.sum()))
    return files


def decode_blocks(data: memoryview, piece: Piece, block_count: int) -> I64:
    """The rows of each block. Raises Damaged."""
    rows: I64 = _decode(data, piece, block_count, {"rows": pa.int64()}).column(0).to_numpy()
    if block_count and rows.min() < 0:
        raise Malformed("a block has a negative number of rows", place=piece.name)
    return rows


def decode_statistics(data: memoryview, piece: Piece, block_count: int) -> ChunkStatistics:
    """One leaf's statistics. Raises Damaged."""
    scalar = _type_of(piece)
    bound = _BOUND_TYPES.get(storage_of(scalar))
    types = {"null_counts": pa.int64(), "flags": pa.uint8()}
    batch = _decode(data, piece, block_count, types if bound is None else {"low": bound, "high": bound, **types})
    is_binary = bound is not None and pa.types.is_binary(bound)
    low, high = (
        None if bound is None else batch.column(name) if is_binary else batch.column(name).to_numpy()
        for name in ("low", "high")
    )
    return ChunkStatistics(
        type=scalar,
        low=low,
        high=high,
        null_counts=batch.column("null_counts").to_numpy(),
        flags=batch.column("flags").to_numpy(),
    )


def _type_of(piece: Piece) -> Scalar:
    try:
        return parse_scalar(piece.type)
    except InvalidRequest as error:
        raise Malformed("the bounds have no known type", place=piece.name, found=piece.type) from error


def decode_places(data: memoryview, piece: Piece, block_count: int) -> ChunkPlaces:
    """Where one leaf's chunks lie. Raises Damaged."""
    types = {"begins": pa.int64(), "sizes": pa.int64(), "codecs": pa.uint8()}
    batch = _decode(data, piece, block_count, types)
    has_counts = "value_counts" in batch.schema.names and batch.schema.field("value_counts").type == pa.int64()
    places = ChunkPlaces(
        begins=batch.column("begins").to_numpy(),
        sizes=batch.column("sizes").to_numpy(),
        codecs=batch.column("codecs").to_numpy(),
        value_counts=batch.column("value_counts").to_numpy() if has_counts else None,
    )
    if block_count and (places.begins.min() < 0 or places.sizes.min() < 0):
        raise Malformed("a chunk begins before its file", place=piece.name)
    return places


def _encode(columns: Mapping[str, Column], metadata: dict[bytes | str, bytes | str] | None = None) -> bytes:
    arrays: Sequence[AnyArray] = [c if isinstance(c, pa.Array) else pa.array(c) for c in columns.values()]
    schema = pa.schema([pa.field(n, a.type) for n, a in zip(columns, arrays, strict=True)], metadata=metadata)
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _decode(data: memoryview, piece: Piece, row_count: int, types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    if len(data) != piece.size_bytes:
        raise Truncated("the piece is cut short", place=piece.name, expected=piece.size_bytes, found=len(data))
    if (computed := crc32(data)) != piece.crc:
        raise ChecksumMismatch(
            "the checksum does not match",
            place=piece.name,
            expected=f"0x{piece.crc:08X}",
            found=f"0x{computed:08X}",
            hint='The segment is damaged. Run "underlay verify".',
        )
    try:
        batch = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
        batch.validate(full=True)
    except (pa.ArrowException, StopIteration, OSError) as error:
        raise Malformed(f"not an Arrow record batch: {error}", place=piece.name) from error
    if batch.num_rows != row_count:
        raise Malformed("the wrong number of rows", place=piece.name, expected=row_count, found=batch.num_rows)
    nullable = ("etags", "deletes")
    for name, wanted in types.items():
        if batch.schema.names.count(name) != 1 or batch.schema.field(name).type != wanted:
            raise Malformed(f"there is no {name} of type {wanted}", place=piece.name)
        if name not in nullable and batch.column(name).null_count:
            raise Malformed(f"{name} has nulls", place=piece.name)
    return batch
