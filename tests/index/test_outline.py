"""The outline of a root says what the root says, and refuses what `decode_root` refuses."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from msgspec.structs import replace

from tests.table.entries import append, appending, entry, name, new_table, replacing
from underlay.api.opened.info import describe
from underlay.errors import Malformed, UnderlayError, Unsupported
from underlay.index.outline import decode_outline, decode_summary, facts_of, outline_of
from underlay.index.root import Root, SourceRecord, Terminal, decode_root, encode_root
from underlay.index.sealed_json import seal, unseal
from underlay.table.commit.commit import commit
from underlay.table.time_travel import rollback


def roots() -> list[Root]:
    """Appends, a flushed tail, a removal, a token, a rollback and an end."""
    _, revision = new_table()
    found = [revision.root(0), append(revision, *(name() for _ in range(150)))]
    files = [name() for _ in range(3)]
    found += [append(revision, *files, token="once"), commit(replacing(revision, files[:2], name()))]
    found.append(rollback(revision, 1))
    end = Terminal(reason="drop", table="taxi.trips", successor=None, commit_id="end")
    return [*found, replace(found[-1], delta=replace(found[-1].delta, restored=None), terminal=end, fences={"job": 2})]


def test_an_outline_says_what_its_root_says() -> None:
    made = roots()
    assert any(root.segments for root in made)
    for root in made:
        outline = decode_outline(encode_root(root))
        assert outline == outline_of(root)
        for field in ("version", "commit_id", "parent_id", "committed_us", "operation", "counts", "writer", "fences"):
            assert getattr(outline, field) == getattr(root, field)
        for field in ("row_count", "file_count", "data_bytes"):
            assert getattr(outline, field) == getattr(root, field)
        assert [segment.id for segment in outline.segments] == [ref.id for ref in root.segments]
        assert (outline.removed, outline.restored) == (root.delta.removed, root.delta.restored)
        assert outline.changed_sources == root.delta.sources
        assert outline.is_terminal == (root.terminal is not None)


def test_a_summary_says_of_a_version_what_its_root_says() -> None:
    for root in roots():
        assert describe(decode_summary(encode_root(root))) == describe(root)


def test_a_summary_makes_nothing_of_the_tail() -> None:
    """Most of a root is its tail: a history of 10,000 versions would decode a hundred thousand files."""
    _, revision = new_table()
    append(revision, *(name() for _ in range(20)))
    json = msgspec.json.decode(unseal(encode_root(revision.head())))
    strange = seal(msgspec.json.encode(json | {"tail": ["no file"]}))
    assert decode_summary(strange).version == 1
    with pytest.raises(Malformed):
        decode_root(strange)


@pytest.mark.parametrize("change", [{"format": 99}, {"row_count": "many"}])
def test_a_summary_of_what_is_no_root_is_refused_as_the_root_is(change: dict[str, object]) -> None:
    json = msgspec.json.decode(unseal(encode_root(roots()[0])))
    damaged = seal(msgspec.json.encode(json | change))
    with pytest.raises(UnderlayError) as of_root:
        decode_root(damaged)
    with pytest.raises(type(of_root.value)) as of_summary:
        decode_summary(damaged)
    assert str(of_summary.value) == str(of_root.value)


def test_only_files_that_the_version_added_are_told_of() -> None:
    _, revision = new_table()
    append(revision, name())
    root = append(revision, "one.parquet", "two.parquet")
    assert len(root.tail) == 3
    assert [file.location for file in decode_outline(encode_root(root)).added] == ["one.parquet", "two.parquet"]


def test_facts_of_a_file_count_its_deleted_rows() -> None:
    facts = facts_of(replace(entry("a.parquet"), etag='"tag"', deleted_rows=7))
    assert facts == ("a.parquet", '"tag"', len("a.parquet"), 100, 2)


def test_a_version_that_went_back_has_its_whole_root() -> None:
    restored = next(root for root in roots() if root.delta.restored is not None)
    assert decode_outline(encode_root(restored)).whole == restored


def test_sources_keep_all_that_is_known_of_them() -> None:
    _, revision = new_table()
    transaction = appending(revision, name())
    record = SourceRecord(uri="s3://a", identity="e", version=0, status="failed", owner="job", row_count=3, error="no")
    transaction.add_source(record)
    assert decode_outline(encode_root(commit(transaction))).changed_sources == (replace(record, version=1),)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 5},
        {"format": 5, "delta": "of another kind"},
        {"format": "one"},
        {"version": None},
        {"delta": []},
        {"tail": 1},
        {"segments": [{}]},
    ],
)
def test_what_is_no_root_is_refused_as_a_root_would_be(change: dict[str, object]) -> None:
    members = msgspec.json.decode(unseal(encode_root(roots()[1])))
    data = seal(msgspec.json.encode(members | change))
    assert type(failure(decode_outline, data)) is type(failure(decode_root, data))


@pytest.mark.parametrize("decode", [decode_outline, decode_root])
@pytest.mark.parametrize("change", [{"format": 5}, {"format": 5, "version": "seven"}])
def test_another_format_is_unsupported(decode: Callable[[bytes], object], change: dict[str, object]) -> None:
    members = msgspec.json.decode(unseal(encode_root(roots()[0])))
    with pytest.raises(Unsupported, match="unknown format"):
        decode(seal(msgspec.json.encode(members | change)))


def test_more_added_files_than_there_are_in_the_tail_are_refused() -> None:
    root = roots()[0]
    with pytest.raises(Malformed, match="more files than its tail"):
        decode_outline(encode_root(replace(root, delta=replace(root.delta, added_in_tail=1))))


def test_every_cut_and_every_flipped_byte_is_refused() -> None:
    data = encode_root(roots()[0])
    for place in range(0, len(data), 7):
        failure(decode_outline, data[:place])
        failure(decode_outline, data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])


def failure(decode: object, data: bytes) -> UnderlayError:
    assert callable(decode)
    with pytest.raises(UnderlayError) as caught:
        decode(data)
    return caught.value
