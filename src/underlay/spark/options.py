"""What the options of `spark.read.format("underlay")` and `df.write.format("underlay")` say.

| option | meaning |
|---|---|
| `lake` | path or URL; else the lake that the source was registered with, else UNDERLAY_LAKE |
| `path` | the table, `dataset.table`: what `load` and `save` are given |
| `registry` | the metadata database; none unless given |
| `version`, `as_of`, `tag` | an older version to read |
| `where` | a condition on the rows to read, for Spark that does not push filters |
| `columns` | what to read: names with commas between, or a JSON list |
| `push_filters` | `true`: take Spark's filters, where its setting for that is on; see `source_read` for the danger |
| `task_bytes` | bytes of files that one task reads; 128 MiB |
| `token` | rows are written once however often a write has this token |
| `option.…` | an option of the store, such as `option.endpoint` |
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from underlay.api.lake import connect
from underlay.api.table import Table
from underlay.errors import InvalidRequest
from underlay.spark.address import StoreAddress

TASK_BYTES = 128 << 20
_STORE = "option."
_READ = ("version", "as_of", "tag", "where", "columns")
_KNOWN = ("lake", "path", "registry", *_READ, "push_filters", "task_bytes", "token")


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

    def open(self) -> Table:
        """The table at the version that is asked for, or at the newest. Raises TableNotFound, VersionNotFound."""
        lake = connect(self.lake.url, options=self.lake.options, registry=self.registry)
        return lake.table(self.table, version=self.version, as_of=self.as_of, tag=self.tag)

    def check_for_writing(self) -> None:
        """Raises InvalidRequest for what only a reader can do."""
        given = [name for name in _READ if getattr(self, name) is not None]
        if given:
            raise InvalidRequest("these options are for reading", found=", ".join(given))


def read_options(options: Mapping[str, str], known: StoreAddress | None = None) -> SourceOptions:
    """The options that Spark hands over; `known` is the lake unless they name one. Raises InvalidRequest."""
    given = {name.lower(): value for name, value in options.items()}
    plain = {name: value for name, value in given.items() if not name.startswith(_STORE)}
    unknown = sorted(plain.keys() - set(_KNOWN))
    if unknown:
        raise InvalidRequest("there is no such option", found=", ".join(unknown), hint=f"Options: {', '.join(_KNOWN)}.")
    if not plain.get("path"):
        raise InvalidRequest("the table is not named", hint='Write load("dataset.table") or save("dataset.table").')
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
    )


def _lake(url: str | None, store: Mapping[str, str], known: StoreAddress | None) -> StoreAddress:
    if url is None and known is not None:
        return StoreAddress(url=known.url, options={**known.options, **store})
    chosen = url or os.environ.get("UNDERLAY_LAKE")
    if not chosen:
        raise InvalidRequest("the lake is not named", hint='Write .option("lake", "s3://bucket/lake").')
    return StoreAddress(url=chosen, options=store)


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise InvalidRequest(f"the option {name} is a whole number", found=text)
    return int(text)


def _is_true(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "false").lower()
    if text not in ("true", "false"):
        raise InvalidRequest(f"the option {name} is true or false", found=text)
    return text == "true"


def _columns(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    try:
        names = msgspec.json.decode(text, type=list[str]) if text.lstrip().startswith("[") else text.split(",")
    except msgspec.DecodeError as error:
        raise InvalidRequest(
            "the option columns is no JSON list of names", found=text, hint='Write a,b or ["a", "b"].'
        ) from error
    found = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    if not found:
        raise InvalidRequest("the option columns names no column", found=text)
    return found
