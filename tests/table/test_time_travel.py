from __future__ import annotations

import pytest

from tests.table.checker import Checker
from tests.table.entries import DEFINITION, append, appending, deleting, new_table, other_client, replacing, source
from underlay.errors import CommitConflict, InvalidRequest, VersionNotFound
from underlay.index.operation import Operation
from underlay.index.root import Definition
from underlay.schema.record import FieldRecord, SchemaRecord
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.commit import flush_and_merge
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.time_travel import at_tag, at_time, at_version, history, rollback, tag
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import Snapshot


def grown(count: int) -> Revision:
    _, revision = new_table()
    for number in range(count):
        append(revision, f"f{number}")
    return revision


def test_versions_that_there_are_not():
    revision = grown(2)
    assert at_version(revision, 1).file_count == 1
    for version in (-1, 3):
        with pytest.raises(VersionNotFound, match="Versions are 0 to 2"):
            at_version(revision, version)


def test_every_moment_has_the_version_that_was_newest_then():
    revision = grown(12)
    times = [revision.root(version).committed_us for version in range(13)]
    for version, moment in enumerate(times):
        assert at_time(revision, moment).version == version
        if version:
            assert at_time(revision, moment - 1).version == version - 1
    assert at_time(revision, times[-1] + 1000).version == 12
    with pytest.raises(VersionNotFound, match="from that time"):
        at_time(revision, times[0] - 1)


def test_a_moment_is_found_in_few_requests():
    revision = grown(40)
    store = CountingStore(revision.store)
    moment = revision.root(7).committed_us
    assert at_time(other_client(revision, store), moment).version == 7
    assert store.request_count(StoreMethod.GET) <= 9


def test_a_tag_outlives_later_commits():
    lake, revision = new_table()
    append(revision, "a")
    tag(lake, "taxi.trips", "audit", revision, 1)
    append(revision, "b")
    assert at_tag(lake, "taxi.trips", "audit")[1].file_count == 1
    with pytest.raises(VersionNotFound):
        tag(lake, "taxi.trips", "later", revision, 3)


@pytest.mark.parametrize(("limit", "count"), [(None, 21), (0, 0), (1, 1), (18, 18), (100, 21)])
def test_the_history_is_newest_first(limit: int | None, count: int):
    revision = grown(20)
    found = [root.version for root in history(revision, limit)]
    assert found == list(range(20, -1, -1))[:count]


def test_a_negative_limit_is_refused():
    with pytest.raises(InvalidRequest):
        list(history(grown(0), -1))


def test_a_rollback_is_a_new_commit_with_the_old_content(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 1000)
    revision = grown(5)
    commit(deleting(revision, "f0", [1]))
    commit(replacing(revision, ["f1", "f2"], "f12"))
    root = rollback(revision, 5)
    assert (root.version, root.delta.restored, root.row_count) == (8, 5, 500)
    files = {file.location for file in Snapshot(revision.store, revision.keys, root).files()}
    assert files == {f"f{number}" for number in range(5)}
    append(revision, "g")
    commit(deleting(revision, "f1", [1]))
    rollback(revision, 7)
    Checker(revision.store).check()


def test_a_rollback_takes_sources_back_and_keeps_fences_and_field_ids():
    _, revision = new_table()
    change = appending(revision, "a")
    change.add_source(source("s3://in/1"))
    change.take_over("job")
    wider = (*DEFINITION.schema.fields, FieldRecord(id=2, name="c", type="int64"))
    change.set_definition(Definition(schema=SchemaRecord(fields=wider, last_id=2), key=(1,)))
    commit(change)
    root = rollback(revision, 0)
    assert root.definition.schema == SchemaRecord(fields=DEFINITION.schema.fields, last_id=2)
    assert (root.fences, root.sources.journal) == ({"job": 1}, ())
    Checker(revision.store).check()


def test_a_rollback_does_not_take_back_what_came_meanwhile():
    revision = grown(2)
    mine = Transaction(revision, revision.head(), Operation.ROLLBACK)
    mine.restore(revision.root(0))
    append(other_client(revision), "late")
    with pytest.raises(CommitConflict, match="rolls back"):
        commit(mine)


def test_an_append_may_follow_a_rollback_that_came_first():
    revision = grown(2)
    mine = appending(revision, "mine")
    rollback(other_client(revision), 1)
    assert commit(mine).file_count == 2
    Checker(revision.store).check()


def test_a_token_that_a_rollback_brought_back_is_not_committed_again():
    _, revision = new_table()
    append(revision, "a", token="t")
    rollback(revision, 0)
    mine = appending(revision, "b", token="t")
    rollback(other_client(revision), 1)
    assert commit(mine).version == 1
    assert revision.head().file_count == 1
    Checker(revision.store).check()


def test_a_rollback_goes_alone():
    revision = grown(1)
    mine = appending(revision, "mine")
    mine.restore(revision.root(0))
    with pytest.raises(InvalidRequest, match="other changes"):
        commit(mine)
