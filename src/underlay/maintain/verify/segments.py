"""Verifies that the segments that versions reference exist, are intact, and agree with references and other entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deflate import crc32

from underlay.errors import ChecksumMismatch, Damaged, NotFound, Truncated, UnderlayError
from underlay.index.root import SegmentBound, SegmentRef
from underlay.index.segment.bounds import segment_bound
from underlay.index.segment.segment import Segment
from underlay.maintain.verify.finding import FindingKind, Severity, VerifyFinding
from underlay.maintain.verify.history import History, LiveFile, RecordedFile, SegmentContent
from underlay.maintain.verify.roots import delete_problems
from underlay.maintain.verify.runner import VerifyContext
from underlay.store.store import Store
from underlay.values.ranges import ByteRange


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """An intact segment, and what it contradicts."""

    content: SegmentContent
    problems: tuple[str, ...]


def verify_segments(work: VerifyContext, history: History) -> Iterator[VerifyFinding]:
    """Read every segment once, completely. The contents of intact ones go into the history."""
    used = {name for facts in history.versions.values() for name in facts.segments}
    refs = {name: ref for name, ref in history.refs.items() if name in used}
    looked = work.each(lambda ref: _read(work.store, history, ref), refs.values())
    for ref, found in zip(refs.values(), looked, strict=True):
        place = history.keys.segment(ref.id)
        if isinstance(found, UnderlayError):
            versions = history.with_segment(ref.id)
            kind = FindingKind.MISSING if isinstance(found, NotFound) else FindingKind.DAMAGED
            problem = "the segment is missing" if kind is FindingKind.MISSING else str(found)
            yield VerifyFinding(kind=kind, severity=Severity.LOST, place=place, problem=problem, versions=versions)
            continue
        history.contents[ref.id] = found.content
        problems = [*found.problems, *_other_facts(history, found.content)]
        if problems:
            yield VerifyFinding(
                kind=FindingKind.INCONSISTENT,
                severity=Severity.ANSWERS,
                place=place,
                problem="; ".join(problems),
                versions=history.with_segment(ref.id),
            )


def load_segment(store: Store, key: str, ref: SegmentRef) -> Segment:
    """The complete segment, in memory. Raises NotFound, or Damaged when it is not what the reference says."""
    data = store.get(key)[0]
    if len(data) != ref.size_bytes:
        raise Truncated("its size is not the one in the root", expected=ref.size_bytes, found=len(data))
    if (found := crc32(data)) != ref.crc:
        raise ChecksumMismatch("the checksum does not match", expected=f"{ref.crc:#010x}", found=f"{found:#010x}")

    def fetch(ranges: Sequence[ByteRange]) -> list[memoryview]:
        return [data[wanted.begin : wanted.end] for wanted in ranges]

    return Segment.open(ref, fetch, key)


def _read(store: Store, history: History, ref: SegmentRef) -> _Read | UnderlayError:
    try:
        segment = load_segment(store, history.keys.segment(ref.id), ref)
        content = _content(segment)
        bounds = tuple(_bound(segment, bound) for bound in ref.bounds)
    except (Damaged, NotFound) as error:
        return error
    return _Read(content=content, problems=tuple(_problems(ref, content, bounds, segment.file_count)))


def _content(segment: Segment) -> SegmentContent:
    """The files of a segment. Decodes, and so checks, every piece."""
    files = segment.files
    segment.prefetch(files.fields, files.fields)
    for field in files.fields:
        if segment.statistics(field) is None or segment.places(field) is None:
            raise Damaged("a leaf of some file lacks statistics or places", place=f"field {field}")
    columns = zip(
        files.locations.to_pylist(),
        files.size_bytes.tolist(),
        files.etags.to_pylist(),
        files.footer_bytes.tolist(),
        files.footer_crcs.tolist(),
        files.layouts.to_pylist(),
        segment.file_rows.tolist(),
        files.sidecar_bytes.tolist(),
        files.sidecar_crcs.tolist(),
        files.deletes.to_pylist(),
        files.deleted_rows.tolist(),
        strict=True,
    )
    found: dict[str, LiveFile] = {}
    for location, size, etag, footer, crc, layout, rows, sidecar, sidecar_crc, deletes, deleted in columns:
        facts = RecordedFile(
            location=location,
            size_bytes=size,
            etag=etag,
            footer_bytes=footer,
            footer_crc=crc,
            layout=layout,
            row_count=rows,
            sidecar_bytes=sidecar,
            sidecar_crc=sidecar_crc,
        )
        for problem in delete_problems(location, deletes, rows, deleted):
            raise Damaged(problem)
        found[location] = LiveFile(facts=facts, deletes=deletes)
    return SegmentContent(
        files=found,
        layouts=frozenset(file.facts.layout for file in found.values()),
        row_count=int(segment.block_rows.sum()),
        data_bytes=int(files.size_bytes.sum()),
        deleted_rows=int(files.deleted_rows.sum()),
    )


def _bound(segment: Segment, bound: SegmentBound) -> SegmentBound | None:
    statistics = segment.statistics(bound.field)
    return None if statistics is None else segment_bound(bound.field, statistics, segment.block_rows)


def _problems(
    ref: SegmentRef, content: SegmentContent, bounds: tuple[SegmentBound | None, ...], file_count: int
) -> Iterator[str]:
    if len(content.files) != file_count:
        yield "a file is in it twice"
    for name in ("row_count", "data_bytes", "deleted_rows"):
        if getattr(ref, name) != getattr(content, name):
            yield f"its {name} is {getattr(content, name)}, but the root says {getattr(ref, name)}"
    for said, found in zip(ref.bounds, bounds, strict=True):
        if said != found:
            yield f"the root's range of field {said.field} is not that of its blocks: queries would leave it out"


def _other_facts(history: History, content: SegmentContent) -> Iterator[str]:
    known: Mapping[str, RecordedFile] = history.files
    for location, file in content.files.items():
        if known.get(location, file.facts) != file.facts:
            yield f"file {location} is described differently elsewhere"
        history.files.setdefault(location, file.facts)
