"""One revision of a table: its chain of roots, as seen by one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import inf

from underlay.errors import Inconsistent, NotFound, SnapshotExpired, UnderlayError
from underlay.index.keys import RevisionKeys
from underlay.index.outline import VersionSummary, decode_summary
from underlay.index.root import Definition, Retention, Root, decode_root, encode_root
from underlay.index.sealed_json import CommitIds, decode_committed_us, decode_ids
from underlay.index.state import first_root
from underlay.runtime.locks import ProcessLock
from underlay.schema.record import from_record
from underlay.store.store import Store
from underlay.table.versions.chain import NONE, Chain
from underlay.table.versions.environment import Surroundings, uuid7
from underlay.table.versions.links import ChainKeys, check_parent
from underlay.table.versions.publish import Lost
from underlay.table.versions.registry_protocol import Known


class Revision:
    """The versions of one revision. Safe for many threads."""

    def __init__(self, store: Store, table_folder: str, revision_id: str, surroundings: Surroundings) -> None:
        self.store = store
        self.id = revision_id
        self.table_folder = table_folder
        self.surroundings = surroundings
        self.keys = RevisionKeys.of(table_folder, revision_id)
        folder = self.keys.root(0).rsplit("/", 1)[0]
        self.chain = Chain(store, ChainKeys(folder=folder, object=self.keys.root, hint=self.keys.hint), surroundings)
        self._lock = ProcessLock()
        self._newest: Root | None = None

    @property
    def place(self) -> str:
        """Where it is, for errors."""
        return self.keys.folder

    def head(self, max_staleness_seconds: float = 0.0) -> Root:
        """The newest root. One request when it is the one this process knows, none within the staleness. Raises
        Inconsistent when it does not follow the one this process knows, or the one before it: R14."""
        version = self.newest_version(max_staleness_seconds)
        with self._lock:
            known = self._newest
        if known is not None and known.version >= version:
            return known
        newest = self._checked(version, known)
        self._keep(newest)
        return newest

    def newest_version(self, max_staleness_seconds: float = 0.0) -> int:
        """The number of the newest root, which need not be readable. Costs the same as `head`, but reads no root."""
        version = self.chain.head(max_staleness_seconds)
        if version == NONE:
            raise NotFound("the revision has no versions", place=self.place)
        return version

    def start_at(self, bound: Known) -> Callable[[], Root | None]:
        """Look for the newest root, beginning at one that is said to exist. Returns at once a function that waits, and
        that returns None when the store does not have that one."""
        finish_chain = self.chain.start_at(bound, _read_id)

        def finish() -> Root | None:
            data = finish_chain()
            if data is None:
                return None
            with suppress(SnapshotExpired):  # the registry may know only an expired version
                self._keep(self.decode(data, bound.number))
            return self.head(inf)

        return finish

    def root(self, version: int) -> Root:
        """The root of this version. One request. Raises VersionNotFound; SnapshotExpired with the versions that
        remain."""
        with self._lock:
            known = self._newest
        if known is not None:
            if known.version == version:
                return known
            if not known.retention.has(version):
                raise self.expired(version, known)
        try:
            return self.decode(self.chain.get(version), version)
        except SnapshotExpired:
            raise self.expired(version, self.head()) from None

    def expired(self, version: int, head: Root) -> SnapshotExpired:
        """The error for an expired version, with the versions that remain."""
        return SnapshotExpired(
            f"version {version} has expired", place=self.place, hint=f"{versions_left(head.retention, head.version)}."
        )

    def committed_us(self, version: int) -> int:
        """When this version was committed, whether it expired or not. One request. Raises VersionNotFound."""
        with self._lock:
            known = self._newest
        return known.committed_us if known is not None and known.version == version else self._stamp(version)

    def _stamp(self, version: int) -> int:
        try:
            return decode_committed_us(self.chain.get(version))
        except UnderlayError as error:
            raise error.at(self.keys.root(version)) from None

    def summaries(self, versions: Sequence[int]) -> list[VersionSummary]:
        """What a history shows of these versions, without those that expired. One request each. Raises
        VersionNotFound."""
        found = []
        for version, data in zip(versions, self.chain.get_all(versions), strict=True):
            try:
                summary = decode_summary(data)
            except SnapshotExpired:
                continue
            except UnderlayError as error:
                raise error.at(self.keys.root(version)) from None
            if summary.version != version:
                raise Inconsistent("a root has a different version than its key", place=self.keys.root(version))
            found.append(summary)
        return found

    def checked_root(self, version: int) -> Root:
        """The root of this version, checked to follow the one before: R14. Two requests in parallel, one of them small.
        Raises VersionNotFound, Inconsistent."""
        with self._lock:
            known = self._newest
        return known if known is not None and known.version == version else self._checked(version, None)

    def check_root(self, root: Root) -> None:
        """Raise Inconsistent unless this root of the store follows the one before. One small request."""
        self.chain.start_link_check(root.version)(_ids(root))

    def _checked(self, version: int, known: Root | None) -> Root:
        check = self.chain.start_link_check(version, None if known is None else _known(known))
        root = self.root(version)
        check(_ids(root))
        return root

    def start_base_check(self, base: Root) -> Callable[[], None]:
        """Check that `base`, after which the caller is about to publish, is still in the store: R14. Two small
        requests, which are in progress when this returns if the store is remote; the returned function waits for them,
        and raises Inconsistent."""
        return self.chain.start_base_check(_known(base), base.parent_id)

    def check_parent(self, root: Root | VersionSummary, parent: Root | VersionSummary) -> None:
        """Raise Inconsistent unless `root` was made from `parent`."""
        check_parent(self.chain.keys, root.version, _ids(root), _known(parent))

    def roots_after(self, root: Root) -> Iterator[Root]:
        """Every root after this one, in order, one at a time: each holds a whole tail, and there may be thousands. One
        request for each, and one more."""
        first = root.version
        while (data := self.chain.find(root.version + 1)) is not None:
            following = self.decode(data, root.version + 1)
            self.check_parent(following, root)
            yield following
            root = following
        if root.version > first:
            self._keep(root)

    def publish(self, root: Root) -> Root | None:
        """Make `root` the next version; returns None on success, else the root that exists instead. Its base must have
        been checked with `start_base_check`."""
        result = self.chain.publish(root.version, encode_root(root), root.commit_id, _read_id)
        if isinstance(result, Lost):
            return self.decode(result.winner, root.version)
        self._keep(root, is_own=True)
        return None

    def _keep(self, root: Root, *, is_own: bool = False) -> None:
        with self._lock:
            if self._newest is not None and root.version <= self._newest.version:
                return
            self._newest = root
        if self.surroundings.registry is not None:
            self.surroundings.registry.saw_root(self.table_folder, self.id, root, is_own=is_own)

    def decode(self, data: memoryview, version: int) -> Root:
        """The root in `data`. Errors name its place."""
        try:
            root = decode_root(data)
            from_record(root.definition.schema)  # checked here, where its place is known
        except UnderlayError as error:
            raise error.at(self.keys.root(version)) from None
        if root.version != version:
            raise Inconsistent("a root has a different version than its key", place=self.keys.root(version))
        return root


def create_revision(store: Store, table_folder: str, definition: Definition, surroundings: Surroundings) -> Revision:
    """A new revision with version 0, which no catalog entry names yet."""
    revision = Revision(store, table_folder, uuid7(), surroundings)
    root = first_root(
        definition,
        commit_id=surroundings.new_commit_id(),
        now_us=surroundings.now_us(),
        writer=surroundings.writer,
    )
    other = revision.publish(root)
    if other is not None:
        raise Inconsistent("another writer made a revision of the same random name", place=revision.place)
    return revision


def versions_left(retention: Retention, newest: int) -> str:
    """Which versions exist, in words."""
    also = f"{', '.join(map(str, retention.also))} and " if retention.also else ""
    return f"Versions are {also}{retention.begin} to {newest}"


def _read_id(data: memoryview) -> str:
    return decode_ids(data).commit_id


def _known(root: Root | VersionSummary) -> Known:
    return Known(root.version, root.commit_id)


def _ids(root: Root | VersionSummary) -> CommitIds:
    return CommitIds(root.commit_id, root.parent_id)
