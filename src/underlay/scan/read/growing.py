"""Local files that others append to while they are read: hot partitions.

A reader knows which bytes were committed, and these never change. So, other than in `LocalStore`, a file that is longer
than it was, or grows while it is read, is still the same.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from underlay.errors import NotFound, from_os_error
from underlay.index.keys import HOT_SCHEME
from underlay.runtime.locks import cached_property
from underlay.store.coalesce import cut, join, past_the_end
from underlay.store.directory import open_below, read
from underlay.store.key import check_key
from underlay.store.local import LocalStore
from underlay.values.ranges import ByteRange

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class GrowingStore(LocalStore):
    """All files of this machine, by their paths."""

    @cached_property
    def url(self) -> str:
        """As in locations."""
        return f"{HOT_SCHEME}://{self.root.as_posix()}"

    def get_ranges(
        self,
        key: str,
        ranges: Sequence[ByteRange],
        *,
        if_match: str | None = None,
        size_bytes: int | None = None,
        gap_bytes: int | None = None,
    ) -> Sequence[memoryview]:
        """See Store. `size_bytes` is what was committed: the file may be longer."""
        joined = join(ranges, self.gap_bytes if gap_bytes is None else gap_bytes)
        place = str(self.root / key)
        try:
            descriptor = open_below(self.root, check_key(key).split("/"), _READ)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(
                "the hot partition is gone: it was compacted or sealed since the query began, longer ago than readers "
                "may take",
                place=place,
                hint="Run the query again.",
            ) from None
        except OSError as error:
            raise from_os_error(error, place) from error
        try:
            length = os.fstat(descriptor).st_size
            beyond = next((wanted for wanted in joined if wanted.end > length), None)
            if beyond is not None:  # before allocating memory for it
                raise past_the_end(beyond, length).at(place)
            fetched = [memoryview(read(descriptor, wanted)) for wanted in joined]
        except OSError as error:
            raise from_os_error(error, place) from error
        finally:
            os.close(descriptor)
        return cut(fetched, joined, ranges)
