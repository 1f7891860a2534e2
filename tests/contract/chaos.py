"""A registry that answers nothing, something old or something untrue, by a seed: no answer of a lake may change.

It hears of commits late, in another order, or never, as a database does that is down, behind or another lake's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random
from threading import Lock

from underlay.errors import RegistryRefused
from underlay.index.catalog import Catalog
from underlay.index.keys import RevisionKeys
from underlay.index.root import Root
from underlay.table.versions.registry_protocol import Known, KnownTable, Opening
from underlay.values.ranges import ByteRange

_LOST = 0.2
_SILENT = 0.2
_WRONG = 0.15


class ChaoticRegistry:
    """What a lake takes for its registry. All lakes of one world share it. Safe for many threads."""

    def __init__(self, seed: int) -> None:
        self.answers: Counter[str] = Counter()
        """How often it answered what."""
        self.refused: list[RegistryRefused] = []
        self.pieces = ForgetfulPieces(seed)
        self._chance = Random(seed)
        self._catalogs: list[Catalog] = []
        self._heads: dict[str, list[Known]] = defaultdict(list)
        self._unheard: list[tuple[str, Root] | Catalog] = []
        self._lock = Lock()

    def opening(self, name: str | None) -> Opening | None:
        """Any entry of the catalog that it heard of, and any version of the table that this entry has."""
        with self._lock:
            self._hear()
            if not self._catalogs or self._chance.random() < _SILENT:
                self.answers["nothing"] += 1
                return None
            catalog = self._chance.choice(self._catalogs)
            self.answers["newest" if catalog is self._catalogs[-1] else "old"] += 1
            record = catalog.tables.get(name) if name is not None else None
            heads = self._heads[record.active] if record is not None else []
            table = None
            if record is not None and heads:
                head = self._known(self._chance.choice(heads))
                table = KnownTable(folder=record.folder, revision=record.active, head=head)
            return Opening(catalog=self._known(Known(catalog.number, catalog.commit_id)), table=table)

    def _known(self, known: Known) -> Known:
        if self._chance.random() >= _WRONG:
            return known
        self.answers["wrong"] += 1
        return self._chance.choice([Known(known.number + 7, known.commit_id), Known(known.number, "0" * 32)])

    def _hear(self) -> None:
        """Of some of what happened since, in any order."""
        self._chance.shuffle(self._unheard)
        for _ in range(self._chance.randint(0, len(self._unheard))):
            match self._unheard.pop():
                case Catalog() as catalog:
                    self._catalogs.append(catalog)
                case revision, root:
                    self._heads[revision].append(Known(root.version, root.commit_id))

    def saw_catalog(self, catalog: Catalog, *, is_own: bool) -> None:
        with self._lock:
            if self._chance.random() >= _LOST:
                self._unheard.append(catalog)

    def saw_root(self, folder: str, revision: str, root: Root, *, is_own: bool) -> None:
        with self._lock:
            if self._chance.random() >= _LOST:
                self._unheard.append((revision, root))

    def saw_job(self, keys: RevisionKeys, revision: str, job: str) -> None: ...

    def saw_reader(self, keys: RevisionKeys, revision: str, reader: str) -> None: ...

    def saw_run(self, keys: RevisionKeys, revision: str, job: str) -> None: ...

    def refuse(self, error: RegistryRefused) -> None:
        """It is asked again all the same: one that nobody listens to shows nothing."""
        self.refused.append(error)

    def wait(self, timeout_seconds: float | None = None) -> bool:
        return True

    def finish(self, timeout_seconds: float) -> bool:
        return True

    def differences(self) -> list[object]:
        return []

    def close(self) -> None: ...


class ForgetfulPieces:
    """Bytes that others fetched: the right ones, or none."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._kept: dict[tuple[str, str, ByteRange], bytes] = {}

    def read(self, place: str, version: str, ranges: Sequence[ByteRange]) -> Sequence[memoryview | None]:
        found = (self._kept.get((place, version, wanted)) for wanted in ranges)
        return [None if data is None or self._chance.random() < _SILENT else memoryview(data) for data in found]

    def keep(self, place: str, version: str, pieces: Sequence[tuple[ByteRange, memoryview]]) -> None:
        self._kept |= {(place, version, wanted): bytes(piece) for wanted, piece in pieces}
