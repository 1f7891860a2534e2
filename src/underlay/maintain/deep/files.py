"""Reads every file completely and checks it against the index entries of all versions."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import msgspec
from deflate import crc32
from msgspec.structs import replace

from underlay.cache.same_file import get_same_ranges
from underlay.errors import ChecksumMismatch, Damaged, Malformed, NotFound, UnderlayError, Unsupported
from underlay.index.entry import NO_CRC, FileEntry
from underlay.index.keys import is_own
from underlay.index.partition_specs import bind_record, specs_of
from underlay.index.root import Definition, PartitionFieldRecord, Root, decode_root
from underlay.index.segment.widen import widened
from underlay.maintain.deep.rows import RowsCheck, row_problems
from underlay.maintain.deep.statistics import Types, footer_problems, stored_statistics
from underlay.maintain.verify.files import file_finding, read_sidecar
from underlay.maintain.verify.finding import FindingKind, Severity, VerifyFinding, VersionRange
from underlay.maintain.verify.history import History, RecordedFile, facts_of, known_file
from underlay.maintain.verify.runner import VerifyContext
from underlay.maintain.verify.segments import load_segment
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import MAGIC, TAIL_BYTES, read_tail
from underlay.pm.verify import check_against_parquet
from underlay.scan.read.file_stores import ObjectPlace
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.values.ranges import ByteRange

_ENTRIES_AT_ONCE = 64
_COPY_BYTES = 8 << 20
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """One entry of a file, where it is stored, and the table's definition there. `first` is the definition when the
    file was added.
    """

    entry: FileEntry
    types: Types
    definition: Definition
    first: Definition
    place: str
    versions: tuple[VersionRange, ...]
    has_sidecar: bool
    """Whether to compare its sidecar as well."""


@dataclass(slots=True, kw_only=True)
class _Outcome:
    said: _Said
    lost: UnderlayError | None = None
    wrong: list[str] = field(default_factory=list)
    sidecar: list[str] = field(default_factory=list)
    unknown: UnderlayError | None = None


def verify_deep(
    work: VerifyContext, history: History, whole: Mapping[str, RecordedFile], bad_sidecars: Collection[str]
) -> Iterator[VerifyFinding]:
    """Read every file that exists, once for each different entry that describes it."""
    lost: set[str] = set()
    said = _all_said(work, history, whole, bad_sidecars)
    for outcome in work.decode(lambda one: _look(work, history, one), said):
        location = outcome.said.entry.location
        if outcome.lost is not None:
            if location not in lost:
                yield file_finding(history, location, outcome.lost)
            lost.add(location)
            continue
        yield from _findings(history, outcome)


def _findings(history: History, outcome: _Outcome) -> Iterator[VerifyFinding]:
    said, location = outcome.said, outcome.said.entry.location
    if outcome.wrong:
        yield VerifyFinding(
            kind=FindingKind.WRONG_STATISTICS,
            severity=Severity.ANSWERS,
            place=said.place,
            problem=f"of {location}: {_few(outcome.wrong)}",
            versions=said.versions,
            hint="Queries with a filter may leave out rows of this file; scans without one do not.",
        )
    if outcome.sidecar:
        yield VerifyFinding(
            kind=FindingKind.SIDECAR,
            severity=Severity.ANSWERS,
            place=history.keys.sidecar(location),
            problem=_few(outcome.sidecar),
            versions=history.with_file(location),
            hint="The sidecar is the one that was written with the file, but it contradicts the file.",
        )
    if outcome.unknown is not None:
        yield VerifyFinding(
            kind=FindingKind.DAMAGED,
            severity=Severity.NOTE,
            place=history.keys.file(location) or location,
            problem=f"its rows could not be compared: {outcome.unknown}",
        )


def _few(problems: list[str]) -> str:
    more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return "; ".join(problems[:_SHOWN]) + more


def _all_said(
    work: VerifyContext, history: History, whole: Mapping[str, RecordedFile], bad_sidecars: Collection[str]
) -> Iterator[_Said]:
    """Every entry that differs from the file's earlier ones, in the order of versions."""
    seen: dict[str, set[bytes]] = {}
    first: dict[str, Definition] = {}
    for entry, types, root, segment in _entries(work, history):
        if entry.location not in whole:
            continue
        plain = replace(entry, deletes=None, deleted_rows=0)
        shown = [(column.field, str(types[column.field])) for column in entry.columns]
        digest = blake2b(msgspec.msgpack.encode((plain, shown)), digest_size=16).digest()
        known = seen.setdefault(entry.location, set())
        if digest in known:
            continue
        is_first = not known
        known.add(digest)
        yield _Said(
            entry=plain,
            types=types,
            definition=root.definition,
            first=first.setdefault(entry.location, root.definition),
            place=history.keys.root(root.version) if segment is None else history.keys.segment(segment),
            versions=history.with_tail(entry.location, root.version)
            if segment is None
            else history.with_segment(segment),
            has_sidecar=is_first and bool(entry.sidecar_bytes) and entry.location not in bad_sidecars,
        )


def _entries(work: VerifyContext, history: History) -> Iterator[tuple[FileEntry, Types, Root, str | None]]:
    """The entries of tails and segments, each segment once, with the first root that references it."""
    read: set[str] = set()
    for version in history.versions:
        root = decode_root(work.store.get(history.keys.root(version))[0])
        types = {leaf.id: leaf.type for leaf in from_record(root.definition.schema).leaves}
        for entry in root.tail:
            known = tuple(column for column in entry.columns if column.field in types)
            yield replace(entry, columns=known), types, root, None
        for ref in root.segments:
            if ref.id in history.contents and ref.id not in read:
                read.add(ref.id)
                segment = load_segment(work.store, history.keys.segment(ref.id), ref)
                found = {ident: segment.statistics(ident) for ident in segment.files.fields}
                of_segment = {ident: one.type for ident, one in found.items() if one is not None}
                for begin in range(0, segment.file_count, _ENTRIES_AT_ONCE):
                    rows = range(begin, min(begin + _ENTRIES_AT_ONCE, segment.file_count))
                    for entry in segment.entries(rows):
                        yield entry, of_segment, root, ref.id


def _look(work: VerifyContext, history: History, said: _Said) -> _Outcome:
    outcome = _Outcome(said=said)
    entry = said.entry
    try:
        place = work.stores.locate(history.keys, entry.location)
        _compare(history, said, place, _read_footer(place, entry), outcome)
        if said.has_sidecar:
            outcome.sidecar += _sidecar_problems(work, history, place, entry)
    except (NotFound, Damaged) as error:
        outcome.lost = error
    except Unsupported as error:
        outcome.unknown = error
    return outcome


def _read_footer(place: ObjectPlace, entry: FileEntry) -> Footer:
    """The footer that the entry names. Raises Damaged, NotFound, Unsupported."""
    if entry.footer_crc == NO_CRC:
        raise Unsupported("the file was registered through its sidecar, so its footer is not known")
    end = entry.size_bytes - TAIL_BYTES
    wanted = [ByteRange(0, len(MAGIC)), ByteRange(end - entry.footer_bytes, entry.size_bytes)]
    begin, last = get_same_ranges(place.store, place.key, wanted, known_file(entry))
    raw = bytes(last[: entry.footer_bytes])
    if bytes(begin) != MAGIC:
        raise Malformed("the file does not begin as a Parquet file does", expected=MAGIC, found=bytes(begin))
    if read_tail(bytes(last[-TAIL_BYTES:]), entry.size_bytes).footer_length != entry.footer_bytes:
        raise Malformed("the footer has the wrong length", expected=entry.footer_bytes)
    if (found := crc32(raw)) != entry.footer_crc:
        raise ChecksumMismatch(
            "the footer was replaced or is damaged", expected=f"{entry.footer_crc:#010x}", found=f"{found:#010x}"
        )
    return Footer.parse(raw)


def _compare(history: History, said: _Said, place: ObjectPlace, footer: Footer, outcome: _Outcome) -> None:
    entry, schema = said.entry, from_record(said.definition.schema)
    layout = history.layouts.get(entry.layout)
    if layout is None:
        outcome.wrong.append(f"its layout {entry.layout} is in no root")
        return
    stored = stored_statistics(entry, said.types)
    first = from_record(said.first.schema)
    outcome.wrong += footer_problems(entry, stored, footer, layout, first)
    spec = specs_of(said.definition).get(entry.spec, ())
    if spec and len(entry.partition) != len(spec):
        outcome.wrong.append("it has the wrong number of partition values for the table's partitions")
        spec = ()
    leaves = schema.leaf_by_id
    partitions = [
        (bind_record(schema, one), value)
        for one, value in zip(spec, entry.partition if spec else (), strict=True)
        if one.field in leaves and _has_type_of(one, first, schema)
    ]
    check = RowsCheck(
        place=place,
        entry=entry,
        layout=layout,
        schema=schema,
        statistics={ident: widened(one, leaves[ident].type) for ident, one in stored.items() if ident in leaves},
        partitions=partitions,
    )
    outcome.wrong += row_problems(check)


def _has_type_of(record: PartitionFieldRecord, first: TableSchema, schema: TableSchema) -> bool:
    """Whether rows are read in the type from which their partition values were computed."""
    known = first.leaf_by_id.get(record.field)
    return not record.source and known is not None and known.type == schema.leaf_by_id[record.field].type


def _sidecar_problems(work: VerifyContext, history: History, place: ObjectPlace, entry: FileEntry) -> list[str]:
    """Compare the sidecar of our own file with the file's footer and values, using a copy of the file on this machine's
    disk.
    """
    if not is_own(entry.location):
        return []
    sidecar = read_sidecar(ObjectPlace(work.store, history.keys.sidecar(entry.location)), facts_of(entry))
    with tempfile.TemporaryDirectory(prefix="underlay-verify-") as folder:
        path = Path(folder) / entry.location
        with path.open("wb") as copy:
            for begin in range(0, entry.size_bytes, _COPY_BYTES):
                end = min(begin + _COPY_BYTES, entry.size_bytes)
                (part,) = place.store.get_ranges(place.key, [ByteRange(begin, end)], size_bytes=entry.size_bytes)
                copy.write(part)
        problems = check_against_parquet(sidecar, path, deep=True)
        return [str(problem).replace(f"{path}: ", "") for problem in problems]
