"""The options of `spark.read.format("underlay")` and `df.write.format("underlay")`.

| option | meaning |
|---|---|
| `lake` | path or URL; else the lake that the source was registered with, else UNDERLAY_LAKE |
| `path` | the table, `dataset.table`: what `load` and `save` are given |
| `registry` | the metadata database; none unless given |
| `version`, `as_of`, `tag` | an older version to read |
| `where` | a condition on the rows to read, for Spark that does not push filters |
| `columns` | what to read: names with commas between, or a JSON list |
| `push_filters` | `true`: take Spark's filters, where its setting for that is on; see `read` for the danger |
| `task_bytes` | bytes of files that one task reads; 128 MiB |
| `token` | rows are written once however often a write has this token |
| `naive_timestamps` | `session` or `utc`: which local time instants are in columns without a zone; else refused |
| `sink` | a stream's name for what it writes, beside the id of its query; the table's name unless given |
| `startingVersion` | whose appends a stream reads first, or `latest`; unless given the whole table comes first |
| `maxFilesPerTrigger`, `maxBytesPerTrigger` | how much a stream reads at once; 1000 files unless given |
| `skipChanges` | `true`: a stream passes over versions that removed or changed rows, which are an error else |
| `changes` | `true`: rows that were inserted and deleted, with `_change`, `_version`, `_committed_at`; from \
`startingVersion` on |
| `option.…` | an option of the store, such as `option.endpoint` |
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from underlay.api.lake import connect
from underlay.api.table import Table
from underlay.errors import InvalidRequest
from underlay.spark.tasks.store_address import StoreAddress
from underlay.spark.types.from_spark import NaiveTimestamps, read_naive_timestamps

TASK_BYTES = 128 << 20
_STORE = "option."
_READ = ("version", "as_of", "tag", "where", "columns")
_STREAM_READ = ("startingversion", "maxfilespertrigger", "maxbytespertrigger", "skipchanges")
_KNOWN = (
    "lake",
    "path",
    "registry",
    *_READ,
    "push_filters",
    "task_bytes",
    "token",
    "sink",
    "naive_timestamps",
    "changes",
    *_STREAM_READ,
)
_OF_SPARK = ("checkpointlocation", "queryname", "asyncprogresstracking")
"""Prefixes of stream options for Spark itself, which passes on all options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options, read and checked."""

    lake: StoreAddress
    table: str
    registry: str = "none"
    version: int | None = None
    as_of: str | None = None
    tag: str | None = None
    where: str | None = None
    columns: tuple[str, ...] | None = None
    push_filters: bool = False
    task_bytes: int = TASK_BYTES
    token: str | None = None
    sink: str | None = None
    naive_timestamps: NaiveTimestamps | None = None
    checkpoint: str | None = None
    """Where the writing query keeps its offsets, if an option says so."""
    starting_version: int | Literal["latest"] | None = None
    max_files: int | None = None
    max_bytes: int | None = None
    skip_changes: bool = False
    changes: bool = False

    def open(self) -> Table:
        """The table at the requested version, or at the newest. Raises TableNotFound, VersionNotFound."""
        lake = connect(self.lake.url, options=self.lake.options, registry=self.registry)
        return lake.table(self.table, version=self.version, as_of=self.as_of, tag=self.tag)

    def check_for_writing(self) -> None:
        """Raises InvalidRequest for options that only readers have."""
        given = [name for name in _READ if getattr(self, name) is not None] + ["changes"] * self.changes
        if given:
            raise InvalidRequest("these options apply to reads only", found=", ".join(given))

    def check_for_streaming_out(self) -> None:
        """Raises InvalidRequest for options that a writing stream lacks."""
        self.check_for_writing()
        if self.token is not None:
            raise InvalidRequest("a stream takes no token, because each epoch is written once", found=self.token)

    def check_for_changes(self) -> None:
        """Raises InvalidRequest for options that readers of changes lack."""
        given = [name for name in ("where", "max_files", "max_bytes") if getattr(self, name) is not None]
        given += ["push_filters"] * self.push_filters + ["skipChanges"] * self.skip_changes
        if given:
            raise InvalidRequest("these options cannot be combined with changes", found=", ".join(given))

    def check_for_streaming_in(self) -> None:
        """Raises InvalidRequest for options that a reading stream lacks."""
        given = [name for name in ("version", "as_of", "tag") if getattr(self, name) is not None]
        if given:
            raise InvalidRequest(
                "a stream reads appends, not one version",
                found=", ".join(given),
                hint="Set where it starts with startingVersion.",
            )
        if self.max_files is not None and self.max_bytes is not None:
            raise InvalidRequest("give either maxFilesPerTrigger or maxBytesPerTrigger, not both")
        if self.max_files == 0 or self.max_bytes == 0:
            raise InvalidRequest("a batch of a stream must read something", expected="at least 1", found=0)


def read_options(options: Mapping[str, str], known: StoreAddress | None = None) -> SourceOptions:
    """Read the options from Spark; `known` is the lake unless they name one. Raises InvalidRequest."""
    given = {name.lower(): value for name, value in options.items()}
    plain = {name: value for name, value in given.items() if not name.startswith(_STORE)}
    unknown = sorted(name for name in plain.keys() - set(_KNOWN) if not name.startswith(_OF_SPARK))
    if unknown:
        raise InvalidRequest("unknown option", found=", ".join(unknown), hint=f"Options: {', '.join(_KNOWN)}.")
    if not plain.get("path"):
        raise InvalidRequest(
            "the table name is missing",
            hint='Write load("dataset.table"), save("dataset.table"), or '
            'start("dataset.table") for a stream: toTable is for tables that Spark itself manages.',
        )
    store = {name.removeprefix(_STORE): value for name, value in given.items() if name.startswith(_STORE)}
    return SourceOptions(
        lake=_lake(plain.get("lake"), store, known),
        table=plain["path"],
        registry=plain.get("registry", "none"),
        version=_number(plain, "version"),
        as_of=plain.get("as_of"),
        tag=plain.get("tag"),
        where=plain.get("where"),
        columns=_columns(plain.get("columns")),
        push_filters=_is_true(plain, "push_filters"),
        task_bytes=_number(plain, "task_bytes") or TASK_BYTES,
        token=plain.get("token"),
        sink=plain.get("sink"),
        naive_timestamps=read_naive_timestamps(plain.get("naive_timestamps")),
        checkpoint=plain.get("checkpointlocation"),
        starting_version=_starting_version(plain),
        max_files=_number(plain, "maxfilespertrigger"),
        max_bytes=_number(plain, "maxbytespertrigger"),
        skip_changes=_is_true(plain, "skipchanges"),
        changes=_is_true(plain, "changes"),
    )


def _lake(url: str | None, store: Mapping[str, str], known: StoreAddress | None) -> StoreAddress:
    if url is None and known is not None:
        return StoreAddress(url=known.url, options={**known.options, **store})
    chosen = url or os.environ.get("UNDERLAY_LAKE")
    if not chosen:
        raise InvalidRequest("the lake is missing", hint='Write .option("lake", "s3://bucket/lake").')
    return StoreAddress(url=chosen, options=store)


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise InvalidRequest(f"the option {name} must be a whole number", found=text)
    return int(text)


def _starting_version(given: Mapping[str, str]) -> int | Literal["latest"] | None:
    return "latest" if given.get("startingversion", "").lower() == "latest" else _number(given, "startingversion")


def _is_true(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "false").lower()
    if text not in ("true", "false"):
        raise InvalidRequest(f"the option {name} must be true or false", found=text)
    return text == "true"


def _columns(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    try:
        names = msgspec.json.decode(text, type=list[str]) if text.lstrip().startswith("[") else text.split(",")
    except msgspec.DecodeError as error:
        raise InvalidRequest(
            "the option columns is not a JSON list of names", found=text, hint='Write a,b or ["a", "b"].'
        ) from error
    found = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    if not found:
        raise InvalidRequest("the option columns names no column", found=text)
    return found
