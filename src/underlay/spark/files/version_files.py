"""Chooses the files of a version that may match, group by group, and checks that registered files are unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from underlay.api.table import Table
from underlay.cache.same_file import KnownFile, current_etag
from underlay.errors import BadPredicate, NotFound, Replaced, UnknownColumn
from underlay.index.deletion_vectors import pack
from underlay.index.keys import plain_location
from underlay.index.segment.arrays import FileArrays
from underlay.plan.part import Numbers, distinct
from underlay.plan.plan import BlockPlan
from underlay.prune import TRUE, Predicate
from underlay.prune.predicates.predicate import And
from underlay.runtime.locks import cached_property
from underlay.runtime.threads import REQUESTS
from underlay.scan.read.file_stores import LOCAL, ObjectPlace
from underlay.spark.files.file_groups import FileGroups, Group
from underlay.spark.filters.catalyst import and_parts
from underlay.spark.jvm.hadoop_path import hadoop_folder, hadoop_path

_PLANS = 16
"""Plans to remember: Spark asks one group after another with the same predicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredFile:
    """A registered file as it was when it was registered."""

    location: str
    place: ObjectPlace
    known: KnownFile


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Files:
    """Some files of a version. In a group with deleted rows, `deletes` has each file's deleted positions; in a group of
    registered files, `registered` has each file's recorded state.
    """

    paths: list[str]
    """Paths as Hadoop reads them: nothing is quoted."""
    locations: list[str]
    """Locations in the index."""
    sizes: list[int]
    deletes: list[bytes]
    registered: list[RegisteredFile]


class VersionFiles:
    """The files of one version, to which `table` is pinned. Thread-safe."""

    def __init__(self, table: Table, groups: FileGroups) -> None:
        self.table = table
        self.groups = groups
        self.snapshot = table.snapshot()
        self._remembered = lru_cache(maxsize=_PLANS)(self._plan)

    @cached_property
    def identity(self) -> str:
        """Equal only for the same version of the same table."""
        root = self.snapshot.root
        return f"{self.table.name}@v{root.version} {self.place} {root.commit_id}"

    @cached_property
    def place(self) -> str:
        """Where the revision is stored, whatever the table's name."""
        return f"{self.snapshot.store.url}/{self.snapshot.keys.folder}"

    def choose(self, group: Group, predicate: Predicate = TRUE) -> Files:
        """The files of a group that may hold a matching row."""
        paths: list[str] = []
        named: list[str] = []
        sizes: list[int] = []
        deletes: list[bytes] = []
        registered: list[RegisteredFile] = []
        for choice in self._remembered(predicate).choices:
            kept = distinct(choice.files)
            chosen: Numbers = kept[self.groups.is_in(group, choice.part, kept)]
            files = choice.part.segment.files
            locations = list(map(str, files.locations.take(chosen).to_pylist()))
            paths += self._paths(locations, group)
            named += locations
            sizes += files.size_bytes[chosen].tolist()
            if group.has_deletes:
                deletes += (choice.part.deletes_of(row) or pack(()) for row in chosen.tolist())
            if group.is_registered:
                registered += map(self._as_registered, locations, _known_files(files, chosen))
        return Files(paths=paths, locations=named, sizes=sizes, deletes=deletes, registered=registered)

    def _as_registered(self, location: str, known: KnownFile) -> RegisteredFile:
        place = self.table.stores.locate(self.snapshot.keys, location)
        return RegisteredFile(location=plain_location(location), place=place, known=known)

    def _paths(self, locations: Iterable[str], group: Group) -> list[str]:
        if not group.is_registered:
            return [self._folder + location for location in locations]
        store = self.snapshot.store.url
        return [
            hadoop_path(plain_location(location)) if (key := self._key(location)) is None else hadoop_folder(store, key)
            for location in locations
        ]

    def _key(self, location: str) -> str | None:
        return self.snapshot.keys.file(location)

    @cached_property
    def _folder(self) -> str:
        return hadoop_folder(self.snapshot.store.url, self.snapshot.keys.folder) + "/"

    def _plan(self, predicate: Predicate) -> BlockPlan:
        """The plan by the part of the predicate that the planner accepts: Spark applies the whole predicate to the
        rows.
        """
        try:
            return self.table.query((), predicate).plan
        except (BadPredicate, UnknownColumn):
            return self.table.query((), self.understood(predicate)).plan

    def understood(self, predicate: Predicate) -> And:
        """The parts of a conjunction that the planner accepts."""
        return And(tuple(part for part in and_parts(predicate) if self._is_understood(part)))

    def _is_understood(self, predicate: Predicate) -> bool:
        try:
            return self.table.query((), predicate).plan is not None
        except (BadPredicate, UnknownColumn):
            return False


def _known_files(files: FileArrays, chosen: Numbers) -> Iterator[KnownFile]:
    facts = zip(
        files.size_bytes[chosen].tolist(),
        files.etags.take(chosen).to_pylist(),
        files.footer_bytes[chosen].tolist(),
        files.footer_crcs[chosen].tolist(),
        strict=True,
    )
    return (KnownFile(*known) for known in facts)


def check_unchanged(files: Sequence[RegisteredFile]) -> None:
    """Raises NotFound or Replaced for the first registered file that is missing or was replaced: Spark reads whatever
    is at a path (R12). One request each, remote ones in parallel.

    A file that is replaced between this check and the read goes unnoticed: Spark has no conditional reads.
    """
    waiting = [REQUESTS.submit(_check, file) for file in files if not _is_local(file)]
    for file in filter(_is_local, files):
        _check(file)
    for one in waiting:
        one.result()


def _is_local(file: RegisteredFile) -> bool:
    return file.place.store.url.startswith(f"{LOCAL}:")


def _check(file: RegisteredFile) -> None:
    found = file.place.store.head(file.place.key)
    if found is None:
        raise NotFound("a registered file is missing", place=file.location)
    if file.known.etag is not None and found.etag != file.known.etag:
        try:
            current_etag(file.place.store, file.place.key, file.known)
        except Replaced as problem:
            raise problem.at(file.location) from None
