"""What a transaction changes, in terms that do not depend on how the table is stored, and what else it may tidy.

A change is applied to whatever root is the head when it commits. Flushes and merges are not part of it: they change how
a root is stored, and are dropped when their input is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from underlay.index.entry import FileEntry, FileLayout
from underlay.index.operation import Operation
from underlay.index.root import Definition, Retention, Root, SegmentRef, SourceRecord, Terminal

TOKEN = "token:"
"""The prefix of a source's URI that is not an object but a user's token for one append."""
IMPORT = "import:"
"""The URI under which a table that was imported notes the table of another system that it follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one commit does.

    `touched` holds every file that is removed or gets deletion bits, as it is in the version that this change was
    made for, with all of its deletion bits.
    """

    operation: Operation
    files: tuple[FileEntry, ...] = ()
    """New files, each in no version before."""
    segments: tuple[SegmentRef, ...] = ()
    """New segments, all of whose files are new."""
    removed: tuple[str, ...] = ()
    """Locations."""
    deletes: Mapping[str, bytes] = field(default_factory=dict)
    """Row positions to delete, by location."""
    touched: Mapping[str, FileEntry] = field(default_factory=dict)
    definition: Definition | None = None
    sources: tuple[SourceRecord, ...] = ()
    """Their `version` is set when they are committed."""
    layouts: tuple[FileLayout, ...] = ()
    has_constants: bool = False
    """Whether a new file has constants: a reader that does not know them must not read the version."""
    fences: Mapping[str, int] = field(default_factory=dict)
    restored: Root | None = None
    """The version to restore; excludes all other changes."""
    terminal: Terminal | None = None
    retention: Retention | None = None
    """Which versions are retained; the others expire."""
    horizon_us: int = 0
    """The horizon of a sweep: older objects may be deleted unless a version references them."""
    ended_jobs: Mapping[str, int] = field(default_factory=dict)
    """Jobs whose epochs are forgotten if they are still these."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Counts that the operation gives itself, besides those computed here."""

    @property
    def token(self) -> str | None:
        """The uri of this commit's token, or None."""
        return next((source.uri for source in self.sources if source.uri.startswith(TOKEN)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """A segment that holds these files, which are in the tail exactly like this."""

    segment: SegmentRef
    files: tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A segment in place of others, with the overlay of their files folded into it.

    `removed` and `deletes` are the part of the overlay that was folded.
    """

    segment: SegmentRef
    inputs: tuple[SegmentRef, ...]
    removed: frozenset[str] = frozenset()
    deletes: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachments:
    """Flushes and merges that ride on a commit."""

    flush: Flush | None = None
    merges: tuple[Merge, ...] = ()
