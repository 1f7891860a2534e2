"""What a source holds, by the endings of its name, and how it is compressed, by its name and its first bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Literal

import pyarrow as pa

from underlay.errors import InvalidRequest, NotFound

Codec = Literal["gzip", "zstd", "bz2", "lz4"]


class FileFormat(Enum):
    """What a file's name says that it is, by its endings."""

    PARQUET = (".parquet", ".parq")
    CSV = (".csv",)
    TSV = (".tsv",)
    JSON = (".jsonl", ".ndjson", ".json")
    ARROW = (".arrow", ".arrows", ".feather", ".ipc")


MAGIC_BYTES = 10
_CODECS: dict[str, Codec] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
_MAGIC: dict[Codec, re.Pattern[bytes]] = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    "bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17\x72\x45\x38\x50\x90)"),
    "lz4": re.compile(rb"\x04\x22\x4d\x18"),
}


def kind_of(name: str) -> FileFormat:
    """What kind of file this is. Raises InvalidRequest for an ending that says nothing."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    if suffixes and suffixes[-1] in _CODECS:
        suffixes.pop()
    for kind in FileFormat:
        if suffixes and suffixes[-1] in kind.value:
            return kind
    known = ", ".join(ending for kind in FileFormat for ending in kind.value)
    raise InvalidRequest("the file's name does not say what it holds", place=name, expected=f"one of {known}")


def codec_of(name: str, magic: bytes) -> Codec | None:
    """How a source is compressed: as its name says, else as its first bytes say."""
    named = _CODECS.get(Path(name).suffix.lower())
    if named is not None:
        return named
    return next((codec for codec, pattern in _MAGIC.items() if pattern.match(magic)), None)


@contextmanager
def open_file(name: str) -> Iterator[tuple[pa.NativeFile, Callable[[], float]]]:
    """The file, decompressed, and how much of it is read."""
    path = existing_file(name)
    size = max(path.stat().st_size, 1)
    with pa.OSFile(str(path), "rb") as raw:
        codec = _CODECS.get(path.suffix.lower())
        file = raw if codec is None else pa.CompressedInputStream(raw, codec)
        yield file, lambda: min(raw.tell() / size, 1.0)


def existing_file(name: str) -> Path:
    """The path of a file of this machine. Raises NotFound."""
    path = Path(name).expanduser()
    if "://" in name:
        raise InvalidRequest("this command reads files of this machine", found=name, hint='"register" takes URLs.')
    if not path.exists():
        raise NotFound("no such file", place=name)
    if path.is_dir():
        raise NotFound("is a directory, not a file", place=name, hint=f"Name its files: {name.rstrip('/')}/*.parquet")
    return path
