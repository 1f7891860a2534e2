"""A change being prepared: what it adds, removes and relies on, and the objects to put before its commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from underlay.errors import InvalidRequest
from underlay.index import deletion_vectors as bitmaps
from underlay.index.change import TOKEN, Change
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.keys import is_own
from underlay.index.operation import Operation
from underlay.index.partition_specs import specs_of
from underlay.index.root import Definition, Retention, Root, SegmentRef, SourceRecord, Terminal
from underlay.index.state import check_positions
from underlay.store.store import Data
from underlay.table.commit.conflicts import ReadSet
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import SegmentLoader, Snapshot, open_segment


class Transaction:
    """Collects a change on top of `base`. For one thread; committed once, by `commit`."""

    def __init__(
        self, revision: Revision, base: Root, operation: Operation, *, load_segment: SegmentLoader = open_segment
    ) -> None:
        self.revision = revision
        self.snapshot = Snapshot(revision.store, revision.keys, base, load_segment)
        self.operation = operation
        self.load_segment = load_segment
        self.reads = ReadSet()
        self.objects: dict[str, Data] = {}
        """Objects to put before the commit, by key. They are put in parallel, in no order."""
        self.held: tuple[str, int] | None = None
        """The job that the writer holds, and its epoch."""
        self.commit_id: str | None = None
        """The id under which it is committed, once that is tried."""
        self._files: list[FileEntry] = []
        self._segments: list[SegmentRef] = []
        self._layouts: dict[str, FileLayout] = {}
        self._has_constants = False
        self._removed: list[str] = []
        self._deletes: dict[str, bytes] = {}
        self._definition: Definition | None = None
        self._sources: dict[str, SourceRecord] = {}
        self._fences: dict[str, int] = {}
        self._restored: Root | None = None
        self._terminal: Terminal | None = None
        self._retention: Retention | None = None
        self._horizon_us = 0
        self._ended_jobs: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._is_entered = False

    @property
    def base(self) -> Root:
        """The version that the change is made for."""
        return self.snapshot.root

    def add_file(self, file: FileEntry, layout: FileLayout | None = None) -> None:
        """A new file, and the schema that it was written with unless the table has it."""
        self._files.append(file)
        self._has_constants |= bool(file.constants)
        if layout is not None:
            self._layouts[layout.id] = layout

    def add_segment(
        self, segment: SegmentRef, data: bytes, layouts: Iterable[FileLayout] = (), *, has_constants: bool = False
    ) -> None:
        """A new segment of new files. `has_constants`: some of them have constants."""
        self._has_constants |= has_constants
        self._segments.append(segment)
        self.objects[self.revision.keys.segment(segment.id)] = data
        self._layouts |= {layout.id: layout for layout in layouts}

    def remove_file(self, location: str) -> None:
        """A file that is no longer part of the table."""
        self._removed.append(location)

    def delete_rows(self, location: str, positions: bytes | Iterable[int] | NDArray[np.integer]) -> None:
        """Delete rows of a file, given by their positions in it or a packed bitmap of them."""
        bits = positions if isinstance(positions, bytes) else bitmaps.pack(positions)
        self._deletes[location] = bitmaps.union(self._deletes.get(location), bits)

    def set_definition(self, definition: Definition) -> None:
        """Another schema, key, order, comment or property."""
        if definition.schema.last_id < self.base.definition.schema.last_id:
            raise InvalidRequest("the new schema would reuse a field id that was already assigned")
        self._definition = definition

    def add_source(self, source: SourceRecord) -> None:
        """Record what became of an input; this replaces an older record of the same uri."""
        self._sources[source.uri] = source

    def set_token(self, token: str) -> None:
        """Commit once, however often a transaction with this token is tried."""
        self.add_source(SourceRecord(uri=TOKEN + token, identity=token, version=0))

    def rely_on(self, reads: ReadSet) -> None:
        """What the change depends on besides the files it changes."""
        self.reads = reads

    def take_over(self, job: str) -> int:
        """Fence off the holder of the job. Returns the new epoch, which holds from the commit on."""
        self._fences[job] = epoch = self.base.next_epoch(job)
        return epoch

    def hold(self, job: str, epoch: int) -> None:
        """Commit only if no other process has taken over the job."""
        self.held = (job, epoch)

    def restore(self, root: Root) -> None:
        """Replace the current contents by those of an older version."""
        self._restored = root

    def close(self, terminal: Terminal) -> None:
        """Close the revision: no version may follow."""
        self._terminal = terminal

    def expire(self, retention: Retention, ended_jobs: Mapping[str, int]) -> None:
        """Expire all versions but these, and forget the epochs of these jobs (R2, R6)."""
        self._retention = retention
        self._ended_jobs = dict(ended_jobs)

    def sweep(self, horizon_us: int) -> None:
        """Once this is committed, unreferenced objects older than this may be deleted (R5)."""
        self._horizon_us = horizon_us

    def count(self, name: str, number: int) -> None:
        """A number for the history, such as `rows_updated`."""
        self._counts[name] = number

    @property
    def adds_files(self) -> bool:
        """Whether it adds a file."""
        return bool(self._files or self._segments)

    @property
    def has_changes(self) -> bool:
        """Whether its commit would change anything. A token alone changes nothing."""
        is_row_change = self.adds_files or self._removed or self._deletes or self._restored
        sources = any(not uri.startswith(TOKEN) for uri in self._sources)
        is_care = self._retention is not None or self._horizon_us or self._ended_jobs
        return bool(is_row_change or sources or self._definition or self._fences or self._terminal or is_care)

    def enter_commit(self) -> Change:
        """The collected change, for a commit. Only once: after a commit of unknown outcome its files may be in the
        table.

        Raises InvalidRequest the second time, and what `change` raises.
        """
        if self._is_entered:
            raise InvalidRequest("a transaction can be committed only once", hint="Begin another one on the new head.")
        self._is_entered = True
        return self.change()

    def change(self) -> Change:
        """The collected change. Reads the entries of files that it changes.

        Raises NotFound when one is missing, InvalidRequest for changes that contradict each other.
        """
        self._check()
        touched = self.snapshot.find_files({*self._removed, *self._deletes})
        for name, bits in self._deletes.items():
            check_positions(touched[name], bits)
        return Change(
            operation=self.operation,
            files=tuple(self._files),
            segments=tuple(self._segments),
            removed=tuple(self._removed),
            deletes=self._deletes,
            touched=touched,
            definition=self._definition,
            sources=tuple(self._sources.values()),
            layouts=tuple(self._layouts.values()),
            has_constants=self._has_constants,
            fences=self._fences,
            restored=self._restored,
            terminal=self._terminal,
            retention=self._retention,
            horizon_us=self._horizon_us,
            ended_jobs=self._ended_jobs,
            counts=self._counts,
        )

    def _check(self) -> None:
        is_plain = not (self._files or self._segments or self._removed or self._deletes or self._definition)
        if self._restored is not None and not is_plain:
            raise InvalidRequest("a rollback cannot be combined with other changes")
        foreign = self.snapshot.known_files({file.location for file in self._files if not is_own(file.location)})
        if foreign:
            raise InvalidRequest("a file is already part of the table", found=", ".join(sorted(foreign)))
        definition, known = self._definition or self.base.definition, specs_of(self.base.definition)
        if known.get(definition.spec, definition.partition_by) != definition.partition_by:
            raise InvalidRequest(
                "another partitioning has the id of a known one",
                expected=max(known) + 1,
                found=definition.spec,
                hint="Files use the spec of their id: make it with partition_specs.with_spec.",
            )
        specs = {file.spec for file in self._files} | {segment.spec for segment in self._segments}
        strange = specs - {definition.spec}
        if strange:
            raise InvalidRequest(
                "files were written with a partition spec that is not the table's current one",
                expected=definition.spec,
                found=", ".join(map(str, sorted(strange))),
            )
