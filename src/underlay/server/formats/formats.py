"""The formats of answers: their names, and which one a request asks for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ResultFormat(Enum):
    """A format of rows, by its file extension."""

    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"
    ARROW = "arrow"
    PARQUET = "parquet"


MEDIA_TYPES = {
    ResultFormat.JSON: "application/json",
    ResultFormat.NDJSON: "application/x-ndjson",
    ResultFormat.CSV: "text/csv; charset=utf-8; header=present",
    ResultFormat.ARROW: "application/vnd.apache.arrow.stream",
    ResultFormat.PARQUET: "application/vnd.apache.parquet",
}
_BY_MEDIA = {
    **{name.partition(";")[0]: one for one, name in MEDIA_TYPES.items()},
    "application/jsonl": ResultFormat.NDJSON,
    "application/ndjson": ResultFormat.NDJSON,
    "text/*": ResultFormat.CSV,
    "application/*": ResultFormat.JSON,
    "*/*": ResultFormat.JSON,
}
COMPRESSIONS = ("zstd", "br", "gzip")
"""Compressions of bodies, best first. Arrow's name differs for one of them."""


class NotAcceptable(Exception):  # HTTP's name; not an UnderlayError, as the library never raises it
    """The request accepts no format that the server offers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """One item of an Accept header."""

    name: str
    quality: float


def preferences(header: str) -> list[Preference]:
    """The items of an Accept or Accept-Encoding header, most preferred first; an unreadable weight counts as 1."""
    found = []
    for item in header.split(","):
        name, *options = [part.strip().lower() for part in item.split(";")]
        given = next((option[2:] for option in options if option.startswith("q=")), "1")
        digits = given.replace(".", "", 1)
        is_number = len(given) <= 8 and digits.isascii() and digits.isdigit()
        if name:
            found.append(Preference(name=name, quality=float(given) if is_number else 1.0))
    return sorted(found, key=lambda one: -one.quality)


def choose_format(accept: str | None, named: str | None = None) -> ResultFormat:
    """The format that a request asks for, by name or by its Accept header. Raises NotAcceptable."""
    names = [one.value for one in ResultFormat]
    if named is not None:
        if named not in names:
            raise NotAcceptable(f"unknown format {named[:80]}; known are {', '.join(names)}")
        return ResultFormat(named)
    for wanted in preferences(accept or "*/*"):
        if wanted.quality > 0 and wanted.name in _BY_MEDIA:
            return _BY_MEDIA[wanted.name]
    known = ", ".join(name.partition(";")[0] for name in MEDIA_TYPES.values())
    raise NotAcceptable(f"no format matches {(accept or '')[:200]}; known are {known}")


def choose_compression(accepted: str | None, format: ResultFormat) -> str | None:
    """How to compress a body, by the request's preference; None for not at all. Parquet is compressed already."""
    if not accepted or format is ResultFormat.PARQUET:
        return None
    wanted = [one for one in preferences(accepted) if one.quality > 0]
    return next((name for name in COMPRESSIONS if any(one.name == name for one in wanted)), None)
