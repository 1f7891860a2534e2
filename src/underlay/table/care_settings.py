"""Maintenance settings of a table: its properties `care.*`, and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from underlay.errors import InvalidRequest
from underlay.values.duration import read_duration

KEEP_FOR = "care.keep_for"
KEEP_VERSIONS = "care.keep_versions"
READER_AGE = "care.reader_age"
COMPACT_AFTER_FILES = "care.compact_after_files"
TARGET_FILE_BYTES = "care.target_file_bytes"
CARE_PROPERTIES = (KEEP_FOR, KEEP_VERSIONS, READER_AGE, COMPACT_AFTER_FILES, TARGET_FILE_BYTES)
DEFAULT_KEEP_FOR = timedelta(days=7)
DEFAULT_KEEP_VERSIONS = 10
DEFAULT_READER_AGE = timedelta(hours=1)
_ASKING = frozenset({KEEP_FOR, KEEP_VERSIONS, COMPACT_AFTER_FILES})
_MOST = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class CareSettings:
    """The settings in the properties of a table; None for those that are not set."""

    keep_for: timedelta | None
    keep_versions: int | None
    reader_age: timedelta
    """The minimum reader age: how long a version stays readable after a newer one replaced it."""
    compact_after_files: int | None
    target_file_bytes: int | None

    @property
    def is_automatic(self) -> bool:
        """Whether the table is maintained automatically."""
        return (self.keep_for, self.keep_versions, self.compact_after_files) != (None, None, None)


def asks_for_care(properties: Mapping[str, str]) -> bool:
    """Whether a property asks for automatic maintenance."""
    return not _ASKING.isdisjoint(properties)


def read_settings(properties: Mapping[str, str]) -> CareSettings:
    """The settings of a table. Raises InvalidRequest for a property with an invalid value."""
    reader_age = _duration(properties, READER_AGE)
    return CareSettings(
        keep_for=_duration(properties, KEEP_FOR),
        keep_versions=_number(properties, KEEP_VERSIONS),
        reader_age=DEFAULT_READER_AGE if reader_age is None else reader_age,
        compact_after_files=_number(properties, COMPACT_AFTER_FILES),
        target_file_bytes=_number(properties, TARGET_FILE_BYTES),
    )


def check_keep(keep: int, what: str = "keep") -> int:
    """`keep`, when it is a number of versions. Raises InvalidRequest."""
    if isinstance(keep, bool) or not isinstance(keep, int) or not 1 <= keep <= _MOST:
        raise InvalidRequest(f"{what} must be a whole number, at least 1", found=repr(keep))
    return keep


def _duration(properties: Mapping[str, str], name: str) -> timedelta | None:
    return read_duration(properties[name], f"the property {name}") if name in properties else None


def _number(properties: Mapping[str, str], name: str) -> int | None:
    if name not in properties:
        return None
    text = properties[name]
    return check_keep(int(text) if text.isdecimal() and text.isascii() else 0, f"the property {name}")
