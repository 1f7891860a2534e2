"""Versions become the same rows however they are split into batches, and what does not follow is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from underlay.errors import Inconsistent, RegistryRefused
from underlay.index.operation import Operation
from underlay.index.outline import FileFacts, Outline, SegmentFacts
from underlay.index.root import SourceRecord
from underlay.registry.mirror.fold import Everything, Mirrored, RegistryDelta, Row, VersionStep, fold

Rows = dict[str, list[Row]]


class Told:
    """A revision's history in the making, and all that each of its versions consisted of."""

    def __init__(self) -> None:
        self.steps: list[VersionStep] = []
        self.states: list[tuple[dict[str, FileFacts], list[str], dict[str, SourceRecord]]] = []

    def commit(
        self,
        *,
        add: list[str] | None = None,
        remove: list[str] | None = None,
        segments: list[str] | None = None,
        sources: list[str] | None = None,
        back_to: int | None = None,
    ) -> Told:
        number = len(self.steps)
        files, ids, known = self.states[-1] if self.states else ({}, [], {})
        files, known = dict(files), dict(known)
        added = [FileFacts(location, f"tag{number}", 10, 100, 2) for location in add or []]
        if back_to is not None:
            files, ids, known = (kind.copy() for kind in self.states[back_to])  # type: ignore[assignment]  # as they were
        files = {location: file for location, file in files.items() if location not in (remove or [])}
        files |= {file.location: file for file in added}
        records = [SourceRecord(uri=uri, identity=f"{number}", version=number) for uri in sources or []]
        known |= {record.uri: record for record in records}
        ids = ids if segments is None else segments
        self.states.append((files, ids, known))
        outline = Outline(
            version=number,
            commit_id=f"commit{number}",
            parent_id=f"commit{number - 1}" if number else None,
            committed_us=number,
            operation=Operation("change"),
            counts={"b": 1, "a": 2},
            writer="tests",
            row_count=100 * len(files),
            file_count=len(files),
            data_bytes=10 * len(files),
            segments=tuple(_segment(one) for one in ids),
            added=tuple(added),
            added_segments=(),
            removed=tuple(remove or ()),
            changed_sources=tuple(records),
            restored=back_to,
            fences={},
            is_terminal=False,
            whole=None,
        )
        everything = Everything(files=tuple(files.values()), sources=tuple(known.values()))
        self.steps.append(
            VersionStep(outline=outline, added=tuple(added), everything=everything if back_to is not None else None)
        )
        return self


def _segment(name: str) -> SegmentFacts:
    return SegmentFacts(id=name, size_bytes=1, crc=2, file_count=3, block_count=4, row_count=5, data_bytes=6)


def write(rows: Rows, batch: RegistryDelta) -> None:
    """What applying a batch does, to lists of rows."""
    ends = (("segments", "segment", batch.ended_segments), ("files", "location", batch.ended_files))
    for table, key, ended in ends:
        live = {str(row[key]): row for row in rows[table] if row["removed"] is None}
        for name, version in ended.items():
            live[name]["removed"] = version
    rows["versions"] += batch.versions
    rows["segments"] += batch.segments
    rows["files"] += batch.files
    changed = {row["uri"] for row in batch.sources}
    kept = [] if batch.replaces_sources else [row for row in rows["sources"] if row["uri"] not in changed]
    rows["sources"] = kept + batch.sources


def after(batch: RegistryDelta, live_files: Callable[[], Mapping[str, FileFacts]]) -> Mirrored:
    """What a registry holds when the batch was applied."""
    return Mirrored(
        head=batch.last.version,
        head_id=batch.last.commit_id,
        file_count=batch.last.file_count,
        segments=frozenset(segment.id for segment in batch.last.segments),
        live_files=live_files,
    )


def fold_in_parts(steps: list[VersionStep], cuts: set[int]) -> Rows:
    rows: Rows = {"versions": [], "segments": [], "files": [], "sources": []}

    def live_files() -> dict[str, FileFacts]:
        live = [row for row in rows["files"] if row["removed"] is None]
        facts = [FileFacts(*(row[name] for name in FileFacts._fields)) for row in live]  # type: ignore[arg-type]
        return {file.location: file for file in facts}

    before = Mirrored()
    edges = sorted({0, len(steps), *(cut for cut in cuts if cut < len(steps))})
    for begin, end in pairwise(edges):
        batch = fold("revision", before, steps[begin:end])
        write(rows, batch)
        before = after(batch, live_files)
    return {table: sorted(found, key=str) for table, found in rows.items()}


@st.composite
def histories(draw: st.DrawFn) -> Told:
    told = Told().commit()
    names, uris, ids = list("abcdef"), list("xyz"), list("STUV")
    for _ in range(draw(st.integers(1, 14))):
        live = sorted(told.states[-1][0])
        if draw(st.integers(0, 4)) == 0:
            told.commit(
                back_to=draw(st.integers(0, len(told.steps) - 1)), sources=draw(st.lists(st.sampled_from(uris)))
            )
            continue
        remove = draw(st.lists(st.sampled_from(live), unique=True)) if live else []
        free = [name for name in names if name not in live or name in remove]
        told.commit(
            add=draw(st.lists(st.sampled_from(free), unique=True, max_size=3)) if free else [],
            remove=remove,
            segments=draw(st.none() | st.lists(st.sampled_from(ids), unique=True)),
            sources=draw(st.lists(st.sampled_from(uris), max_size=2)),
        )
    return told


@given(told=histories(), cuts=st.sets(st.integers(1, 14)))
def test_any_split_into_batches_gives_the_same_rows_and_they_tell_every_version(told: Told, cuts: set[int]) -> None:
    rows = fold_in_parts(told.steps, cuts)
    assert rows == fold_in_parts(told.steps, set(range(1, len(told.steps))))
    for version, (files, ids, _) in enumerate(told.states):
        found = [row for row in rows["files"] if is_true(row, version)]
        assert {row["location"]: row["etag"] for row in found} == {name: file.etag for name, file in files.items()}
        assert len(found) == len(files)
        assert sorted(str(row["segment"]) for row in rows["segments"] if is_true(row, version)) == sorted(ids)
    sources = told.states[-1][2]
    assert {row["uri"]: row["identity"] for row in rows["sources"]} == {u: one.identity for u, one in sources.items()}


def is_true(row: Row, version: int) -> bool:
    added, removed = row["added"], row["removed"]
    assert isinstance(added, int)
    return added <= version and (removed is None or (isinstance(removed, int) and removed > version))


def test_a_file_that_comes_back_gets_a_row_of_its_own() -> None:
    told = Told().commit(add=["a"]).commit(remove=["a"]).commit(back_to=0)
    rows = fold_in_parts(told.steps, set())["files"]
    assert [(row["added"], row["removed"]) for row in rows] == [(0, 1), (2, None)]


def test_a_file_that_stays_over_a_rollback_keeps_its_row() -> None:
    told = Told().commit(add=["a"]).commit(add=["b"]).commit(back_to=0)
    rows = fold_in_parts(told.steps, {1})["files"]
    assert {row["location"]: (row["added"], row["removed"]) for row in rows} == {"a": (0, None), "b": (1, 2)}


def test_files_are_asked_for_only_when_a_version_goes_back() -> None:
    told = Told().commit(add=["a"]).commit(remove=["a"], add=["b"])

    def never() -> dict[str, FileFacts]:
        raise AssertionError("files were asked for")

    before = after(fold("revision", Mirrored(), told.steps[:1]), never)
    assert fold("revision", before, told.steps[1:]).ended_files == {"a": 1}


def test_counts_are_json_with_ascending_names() -> None:
    assert fold("revision", Mirrored(), Told().commit().steps).versions[0]["counts"] == '{"a":2,"b":1}'


def test_a_version_that_does_not_follow_the_registry_is_refused() -> None:
    steps = Told().commit().commit().steps
    with pytest.raises(RegistryRefused, match="version 1 does not follow the version -1"):
        fold("revision", Mirrored(), steps[1:])
    with pytest.raises(RegistryRefused, match="other"):
        fold("revision", Mirrored(head=0, head_id="other"), steps[1:])


def test_a_version_that_does_not_follow_the_one_before_is_named() -> None:
    first, second = Told().commit().commit().steps
    wrong = VersionStep(outline=replace(second.outline, parent_id="another"), added=())
    with pytest.raises(Inconsistent, match=r"version 1 \(commit1\): it does not follow"):
        fold("revision", Mirrored(), [first, wrong])


def test_a_number_of_files_that_its_changes_do_not_give_is_refused() -> None:
    (step,) = Told().commit(add=["a"]).steps
    with pytest.raises(Inconsistent, match="different number of files"):
        fold("revision", Mirrored(), [VersionStep(outline=step.outline, added=())])
