"""The keys of all objects in a lake. No other module builds or parses a key.

_catalog/00000000000000000003.json
<dataset>/<table>/<revision>/
    000000042-9f86d081884c7d65.parquet
    _pm/000000042-9f86d081884c7d65
    _index/00000000000000000007.root
    _index/segments/<uuid>.arrow
    _index/sources/<uuid>.arrow
    _index/hint, _index/intents/<job>, _index/jobs/<job>, _index/leases/<reader>
    _staging/<job>/…
_iceberg/<dataset>/<table>/metadata/v8.metadata.json, …     exports, for other engines
<dataset>/<table>/_delta_log/…
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

CATALOG = "_catalog"
CATALOG_HINT = f"{CATALOG}/hint"
ICEBERG = "_iceberg"
"""The folder of the exports to Iceberg: a warehouse."""
HOT_SCHEME = "hot"
"""The scheme in the location of a hot partition's file, which only snapshots of this process have, never a root:
`hot:///srv/hot/taxi/trips/2024-01-01.7/data.parquet`."""
HOT_FENCE = "hot:"
"""The prefix of the fence of a hot table, which counts how often it was sealed. It never ends, as jobs do."""
_SUFFIX = ".parquet"
_IN_LAKE = "./"
_ROOT = re.compile(r"\./|[^/]+://[^/]*/")
_AGAIN = re.compile(r"(\./|[^/]+://[^/]*/)/[0-9]+/")
COMES_AGAIN = _AGAIN.pattern
"""The prefix in the location of a file that was removed and registered again."""


_FILE = re.compile(r"[0-9]{9}-([0-9a-f]{16})\.parquet")
_SIDECAR = re.compile(r"[0-9]{9}-([0-9a-f]{16})")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ROOT_NAME = re.compile(r"[0-9]{20}\.root")


class ObjectKind(StrEnum):
    """What an object in the folder of a revision is, by its key."""

    FILE = "file"
    SIDECAR = "sidecar"
    ROOT = "root"
    SEGMENT = "segment"
    PAGE = "source page"
    HINT = "hint"
    INTENT = "intent"
    RECORD = "record"
    LEASE = "lease"
    STAGED = "staged file"
    FOREIGN = "foreign"
    """A name that Underlay does not give."""


def catalog_key(number: int) -> str:
    """The catalog's entry of this number."""
    return f"{CATALOG}/{number:020}.json"


def table_folder(dataset: str, table: str) -> str:
    """The folder of a new table with this name."""
    return f"{dataset}/{table}"


def iceberg_folder(name: str) -> str:
    """The folder, in a warehouse, of the table with this name."""
    dataset, _, table = name.partition(".")
    return f"{dataset}/{table}"


def delta_log(table_folder: str) -> str:
    """The folder of the export to Delta of the table in `table_folder`. It is in no revision, so that a glob of the
    revision finds nothing that another engine left there."""
    return f"{table_folder}/_delta_log"


def file_name(first_block: int, token: int) -> str:
    """The name of a new file: `first_block` is a guess that sorts names for people, `token` is 64 random bits."""
    return f"{first_block:09}-{token:016x}{_SUFFIX}"


@dataclass(frozen=True, slots=True)
class RevisionKeys:
    """The keys of one revision, whose folder is `folder`."""

    folder: str

    @staticmethod
    def of(table_folder: str, revision: str) -> RevisionKeys:
        """The keys of this revision of the table in `table_folder`."""
        return RevisionKeys(f"{table_folder}/{revision}")

    def root(self, version: int) -> str:
        """The root of this version."""
        return f"{self.folder}/_index/{version:020}.root"

    @property
    def hint(self) -> str:
        """The object with a lower bound of the head."""
        return f"{self.folder}/_index/hint"

    def segment(self, segment_id: str) -> str:
        """A segment."""
        return f"{self.folder}/_index/segments/{segment_id}.arrow"

    def source_page(self, page_id: str) -> str:
        """A page of the source tree."""
        return f"{self.folder}/_index/sources/{page_id}.arrow"

    @property
    def intents(self) -> str:
        """The folder of the intents, which writing jobs renew."""
        return f"{self.folder}/_index/intents"

    def intent(self, job: str) -> str:
        """The intent of a job."""
        return f"{self.intents}/{job}"

    def job_of(self, key: str) -> str | None:
        """The job whose intent has this key, None for any other key."""
        return _directly_in(self.intents, key)

    @property
    def records(self) -> str:
        """The folder of the records of runs that ended."""
        return f"{self.folder}/_index/jobs"

    def record(self, job: str) -> str:
        """The record of a run."""
        return f"{self.records}/{job}"

    def recorded_job_of(self, key: str) -> str | None:
        """The run whose record has this key, None for any other key."""
        return _directly_in(self.records, key)

    def staging(self, job: str) -> str:
        """The folder where another engine writes files for a job, before they get their names."""
        return f"{self.folder}/_staging/{job}"

    @property
    def leases(self) -> str:
        """The folder of the leases, which readers of a version renew."""
        return f"{self.folder}/_index/leases"

    def lease(self, reader: str) -> str:
        """The lease of a reader."""
        return f"{self.leases}/{reader}"

    def reader_of(self, key: str) -> str | None:
        """The reader whose lease has this key, None for any other key."""
        return _directly_in(self.leases, key)

    def file(self, location: str) -> str | None:
        """The key of a file in the lake's own store, None when it lies elsewhere (its location is then a URL)."""
        if "/" not in location:
            return f"{self.folder}/{location}"
        plain = plain_location(location)
        return plain.removeprefix(_IN_LAKE) if plain.startswith(_IN_LAKE) else None

    def sidecar(self, location: str) -> str:
        """The sidecar of one of our own files."""
        return f"{self.folder}/_pm/{location.removesuffix(_SUFFIX)}"

    def kind_of(self, key: str) -> tuple[ObjectKind, str]:
        """What an object is, and the part of its name that identifies it: 16 hexadecimal digits for files and sidecars,
        the id for segments and pages, the job or reader for staged files, intents, records and leases."""
        folder, _, name = key.removeprefix(f"{self.folder}/").rpartition("/")
        if (found := _IN_FOLDERS.get(folder)) is not None:
            kind, pattern, suffix = found
            match = pattern.fullmatch(name.removesuffix(suffix)) if name.endswith(suffix) else None
            return (kind, match[match.re.groups]) if match is not None else (ObjectKind.FOREIGN, name)
        if folder == "_index":
            if name == "hint":
                return ObjectKind.HINT, name
            return (ObjectKind.ROOT if _ROOT_NAME.fullmatch(name) else ObjectKind.FOREIGN), name
        first, _, rest = folder.partition("/")
        if first == "_staging" and rest:
            return ObjectKind.STAGED, rest.partition("/")[0]
        return ObjectKind.FOREIGN, name


_ANY = re.compile(r".+")
_IN_FOLDERS = {
    "": (ObjectKind.FILE, _FILE, ""),
    "_pm": (ObjectKind.SIDECAR, _SIDECAR, ""),
    "_index/segments": (ObjectKind.SEGMENT, _UUID, ".arrow"),
    "_index/sources": (ObjectKind.PAGE, _UUID, ".arrow"),
    "_index/intents": (ObjectKind.INTENT, _ANY, ""),
    "_index/jobs": (ObjectKind.RECORD, _ANY, ""),
    "_index/leases": (ObjectKind.LEASE, _ANY, ""),
}


def is_revision_name(name: str) -> bool:
    """Whether a folder may be that of a revision."""
    return _UUID.fullmatch(name) is not None


def own_token(location: str) -> str | None:
    """The 16 hexadecimal digits in the name of a file of ours, None for any other location."""
    found = _FILE.fullmatch(location)
    return None if found is None else found[1]


def in_lake(key: str) -> str:
    """The location of a registered file in the lake's own store."""
    return f"{_IN_LAKE}{key}"


def again(location: str, version: int) -> str:
    """The location of a file that is registered again in this version: another name for the same place.

    A version may still have to distinguish it from the entry that was removed under the plain name. No key has an empty
    segment, so no other location has two slashes there.
    """
    plain = plain_location(location)
    root = _ROOT.match(plain)
    if root is None:
        raise ValueError(f"not the location of a registered file: {location}")
    return f"{root[0]}/{version}/{plain[root.end() :]}"


def plain_location(location: str) -> str:
    """The location of a registered file as it was when first registered."""
    found = _AGAIN.match(location) if "//" in location else None
    return location if found is None else f"{found[1]}{location[found.end() :]}"


def is_own(location: str) -> bool:
    """Whether a file was written by Underlay into the revision's folder."""
    return "/" not in location


def _directly_in(folder: str, key: str) -> str | None:
    parent, _, name = key.rpartition("/")
    return name if parent == folder and name else None
