"""Whether registered files are still the ones that were registered: Spark reads whatever lies at a path (R12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from underlay.errors import NotFound, Replaced
from underlay.runtime.threads import REQUESTS
from underlay.scan.read.file_stores import LOCAL, ObjectPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredFile:
    """A file of others as it was when it was registered."""

    location: str
    place: ObjectPlace
    etag: str | None


def check_unchanged(files: Sequence[RegisteredFile]) -> None:
    """Raises NotFound or Replaced for the first that is gone or another one. One request each, far ones side by side.

    A file that is replaced after this and before it is read is not noticed: Spark has no conditional reads.
    """
    waiting = [REQUESTS.submit(_check, file) for file in files if not _is_near(file)]
    for file in filter(_is_near, files):
        _check(file)
    for one in waiting:
        one.result()


def _is_near(file: RegisteredFile) -> bool:
    return file.place.store.url.startswith(f"{LOCAL}:")


def _check(file: RegisteredFile) -> None:
    found = file.place.store.head(file.place.key)
    if found is None:
        raise NotFound("a registered file is missing", place=file.location)
    if file.etag is not None and found.etag != file.etag:
        raise Replaced(
            "a registered file was replaced since it was registered",
            place=file.location,
            expected=file.etag,
            found=found.etag,
            hint="Registered files must not change. Put the old one back, or register the new one in a new table.",
        )
