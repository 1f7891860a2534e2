"""All verbs that change a table, by two clients who overtake each other, in Python and in SQL, against a model of plain
lists; every version reads the same for ever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import underlay
from tests.change.interrupting import InterruptingStore
from tests.change.update.machine_model import (
    Condition,
    Model,
    Row,
    arrow,
    canonical,
    conditions,
    given,
    keys,
    numbers,
    rows,
    values,
)
from tests.end_to_end.lakes import memory, quick
from tests.gate import sized
from tests.table.checker import Checker
from underlay.cache.settings import memory_cache
from underlay.errors import CommitConflict
from underlay.store.testing.wrapper import StoreMethod

NAME = "shop.items"
clients = st.sampled_from([0, 1])


class Verbs(RuleBasedStateMachine):
    """`versions` is what every version of the table must be."""

    @initialize(in_blocks=st.sampled_from([2, 100]), partitioned=st.booleans())
    def start(self, in_blocks: int, partitioned: bool) -> None:
        memory_cache().start_afresh()
        self.store = memory()
        quick(self.store).create_table(
            NAME,
            "id bigint not null, a bigint, f double, s string",
            key=["id"],
            sort_by=["id"],
            partition_by=["a"] if partitioned else [],
            properties={"block_rows": in_blocks},
        )
        self.versions = [Model()]
        self.is_partitioned = partitioned
        self.tags: dict[str, int] = {}
        self.lakes = [quick(self.store), quick(self.store)]
        self.count = 0
        self.folder = TemporaryDirectory()

    @property
    def now(self) -> Model:
        return self.versions[-1]

    def change(self, client: int, after: Model, do: Callable[[underlay.Lake], object]) -> None:
        """Do it, and remember what came of it; the version stays when nothing was changed."""
        before = self.lakes[client].table(NAME).version
        assert before == len(self.versions) - 1, "a client reads an old version"
        do(self.lakes[client])
        if quick(self.store).table(NAME).version > before:
            self.versions.append(after)
        else:
            assert after == self.now, "nothing was committed"

    @rule(client=clients, new=rows)
    def append(self, client: int, new: dict[int, Any]) -> None:
        known = {row["id"] for row in self.now.rows}
        fresh = [row for row in given(new) if row["id"] not in known]
        after = replace(self.now, rows=(*self.now.rows, *map(self.now.whole, fresh)))
        self.change(client, after, lambda lake: lake.table(NAME).append(arrow(fresh)))

    @rule(client=clients, new=rows, in_sql=st.booleans())
    def insert(self, client: int, new: dict[int, Any], in_sql: bool) -> None:
        known = {row["id"] for row in self.now.rows}
        fresh = [row for row in given(new) if row["id"] not in known]
        if not fresh:
            return
        after = replace(self.now, rows=(*self.now.rows, *map(self.now.whole, fresh)))
        text = f"insert into {NAME} (id, a, f, s) values {values(fresh)}"
        self.change(client, after, lambda lake: lake.sql(text).to_arrow())

    @rule(client=clients, new=rows, part=st.none() | st.tuples(numbers), has_extra=st.booleans())
    def register(self, client: int, new: dict[int, Any], part: tuple[int | None] | None, has_extra: bool) -> None:
        """Files of others, in blocks of two rows: `a` is in them, or in their path; columns that were added may be."""
        known = {row["id"] for row in self.now.rows}
        fresh = [row for row in given(new) if row["id"] not in known]
        if not fresh:
            return
        if self.is_partitioned:  # a file of one partition
            fresh = [row | {"a": fresh[0]["a"]} for row in fresh]
        self.count += 1
        folder = Path(self.folder.name)
        written = arrow(fresh)
        if part is not None:
            fresh = [row | {"a": part[0]} for row in fresh]
            written = written.drop_columns(["a"])
            folder /= f"a={'__HIVE_DEFAULT_PARTITION__' if part[0] is None else part[0]}"
        if has_extra:
            fresh = [row | dict.fromkeys(self.now.extra, row["id"]) for row in fresh]
            for name in self.now.extra:
                written = written.append_column(name, written["id"].cast(pa.int32()))
        folder.mkdir(exist_ok=True)
        pq.write_table(written, folder / f"{self.count}.parquet", row_group_size=2)
        after = replace(self.now, rows=(*self.now.rows, *map(self.now.whole, fresh)))
        self.change(client, after, lambda lake: lake.table(NAME).register(folder / f"{self.count}.parquet"))

    @rule(client=clients, imports=st.booleans())
    def compact(self, client: int, imports: bool) -> None:
        """The rows stay, wherever they are."""

        def do(lake: underlay.Lake) -> object:
            return lake.table(NAME).import_files() if imports else lake.table(NAME).compact()

        self.change(client, self.now, do)

    @rule(client=clients, new=rows)
    def upsert(self, client: int, new: dict[int, Any]) -> None:
        found = given(new)
        self.change(client, self.now.upserted(found), lambda lake: lake.table(NAME).upsert(arrow(found)))

    @rule(client=clients, condition=conditions, in_sql=st.booleans())
    def delete(self, client: int, condition: Condition, in_sql: bool) -> None:
        def do(lake: underlay.Lake) -> object:
            if in_sql:
                return lake.sql(f"delete from {NAME} where {condition.sql}").to_arrow()
            return lake.table(NAME).delete(condition.sql)

        self.change(client, self.now.without(condition), do)

    @rule(client=clients, gone=st.sets(keys, max_size=5))
    def delete_keys(self, client: int, gone: set[int]) -> None:
        after = replace(self.now, rows=tuple(row for row in self.now.rows if row["id"] not in gone))
        named = pa.table({"id": pa.array(sorted(gone), pa.int64())})
        self.change(client, after, lambda lake: lake.table(NAME).delete(rows=named, key=["id"]))

    @rule(client=clients, condition=conditions, in_sql=st.booleans())
    def update(self, client: int, condition: Condition, in_sql: bool) -> None:
        def changed(row: Row) -> Row:
            return row | {"a": None if row["a"] is None else row["a"] + 1, "s": f"{row['id']}"}

        def do(lake: underlay.Lake) -> object:
            if in_sql:
                return lake.sql(f"update {NAME} set a = a + 1, s = id::varchar where {condition.sql}").to_arrow()
            return lake.table(NAME).update({"a": "a + 1", "s": "id::varchar"}, where=condition.sql)

        after = replace(self.now, rows=tuple(changed(r) if condition.holds(r) else r for r in self.now.rows))
        self.change(client, after, do)

    @rule(client=clients, new=rows, condition=conditions, in_sql=st.booleans(), deletes_rest=st.booleans())
    def merge(self, client: int, new: dict[int, Any], condition: Condition, in_sql: bool, deletes_rest: bool) -> None:
        """Rows that match are deleted if they hold the condition, else changed; others come; those that no source row
        names go if they hold it."""
        source = {row["id"]: row for row in given(new)}
        after = []
        for row in self.now.rows:
            if row["id"] not in source:
                if not (deletes_rest and condition.holds(row)):
                    after.append(row)
            elif not condition.holds(row):
                after.append(row | source[row["id"]])
        known = {row["id"] for row in self.now.rows}
        after += [self.now.whole(row) for key, row in source.items() if key not in known]
        text = condition.sql
        for name in ("id", "a", "f", "s"):
            text = text.replace(f"{name} ", f"t.{name} ") if text.startswith(f"{name} ") else text
        text = text.replace("not (s", "not (t.s")

        def do(lake: underlay.Lake) -> object:
            rows_given = arrow(list(source.values()))
            if not in_sql:
                built = lake.table(NAME).merge(rows_given, "t.id = s.id", source_alias="s", target_alias="t")
                built = built.when_matched_delete(text).when_matched_update({c: f"s.{c}" for c in ("a", "f", "s")})
                built = built.when_not_matched_insert({c: f"s.{c}" for c in ("id", "a", "f", "s")})
                return (built.when_not_matched_by_source_delete(text) if deletes_rest else built).execute()
            rest = f" when not matched by source and {text} then delete" if deletes_rest else ""
            return lake.sql(
                f"merge into {NAME} as t using news as s on t.id = s.id when matched and {text} then delete "
                "when matched then update set a = s.a, f = s.f, s = s.s "
                f"when not matched then insert (id, a, f, s) values (s.id, s.a, s.f, s.s){rest}",
                tables={"news": rows_given},
            ).to_arrow()

        self.change(client, replace(self.now, rows=tuple(after)), do)

    @rule(client=clients, new=rows, condition=conditions)
    def overwrite(self, client: int, new: dict[int, Any], condition: Condition) -> None:
        kept = self.now.without(condition)
        known = {row["id"] for row in kept.rows}
        fresh = [row for row in given(new) if row["id"] not in known]
        after = replace(kept, rows=(*kept.rows, *map(kept.whole, fresh)))
        self.change(client, after, lambda lake: lake.table(NAME).overwrite(arrow(fresh), where=condition.sql))

    @rule(client=clients)
    def truncate(self, client: int) -> None:
        self.change(client, replace(self.now, rows=()), lambda lake: lake.table(NAME).truncate())

    @rule(client=clients, default=st.none() | st.integers(0, 9))
    def add_column(self, client: int, default: int | None) -> None:
        self.count += 1
        name = f"x{self.count}"

        def do(lake: underlay.Lake) -> object:
            with lake.table(NAME).evolve() as change:
                change.add_column(name, "bigint", default=default)
            return None

        after = Model(tuple(row | {name: default} for row in self.now.rows), self.now.extra | {name: default})
        self.change(client, after, do)

    @precondition(lambda self: self.now.extra)
    @rule(client=clients, drops=st.booleans(), data=st.data())
    def rename_or_drop_column(self, client: int, drops: bool, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.now.extra)))
        self.count += 1
        new = f"y{self.count}"

        def do(lake: underlay.Lake) -> object:
            with lake.table(NAME).evolve() as change:
                if drops:
                    change.drop_column(name)
                else:
                    change.rename_column(name, new)
            return None

        def evolved(row: Row) -> Row:
            kept = {column: value for column, value in row.items() if column != name}
            return kept if drops else kept | {new: row[name]}

        after = Model(tuple(map(evolved, self.now.rows)), evolved(self.now.extra))
        self.change(client, after, do)

    @rule(client=clients, data=st.data())
    def roll_back(self, client: int, data: st.DataObject) -> None:
        version = data.draw(st.integers(0, len(self.versions) - 1))
        after = self.versions[version]
        before = len(self.versions)
        self.lakes[client].table(NAME).rollback(version)
        if quick(self.store).table(NAME).version == before:
            self.versions.append(after)

    @rule(client=clients, name=st.sampled_from(["red", "blue"]))
    def tag(self, client: int, name: str) -> None:
        if name in self.tags:
            self.lakes[client].table(NAME).untag(name)
        self.lakes[client].table(NAME).tag(name)
        self.tags[name] = len(self.versions) - 1

    @rule(client=clients, mine=rows, theirs=rows)
    def upsert_that_is_overtaken(self, client: int, mine: dict[int, Any], theirs: dict[int, Any]) -> None:
        """Both land, the other one's first."""
        first, second = given(theirs), given(mine)
        if not first or not second:
            return
        other = InterruptingStore(
            self.store, StoreMethod.CREATE, ".root", lambda: self.lakes[client].table(NAME).upsert(arrow(first))
        )
        quick(other).table(NAME).upsert(arrow(second))
        assert not other.waiting
        self.versions.append(self.now.upserted(first))
        self.versions.append(self.now.upserted(second))

    @rule(client=clients, new=rows, condition=conditions)
    def overwrite_that_is_overtaken(self, client: int, new: dict[int, Any], condition: Condition) -> None:
        """It lands if no row that it is about was touched, else it changes nothing."""
        known = {row["id"] for row in self.now.rows}
        theirs = [row for row in given(new) if row["id"] not in known]
        if not theirs:
            return
        other = InterruptingStore(
            self.store, StoreMethod.CREATE, ".root", lambda: self.lakes[client].table(NAME).append(arrow(theirs))
        )
        mine = arrow([{"id": 99, "a": 0, "f": 0.0, "s": None}])
        try:
            quick(other).table(NAME).overwrite(mine, where=condition.sql)
            is_done = True
        except CommitConflict:
            is_done = False
        assert not other.waiting
        before = self.now
        self.versions.append(replace(before, rows=(*before.rows, *map(before.whole, theirs))))
        if is_done:
            kept = self.now.without(condition)
            assert not any(condition.holds(row) for row in theirs), "rows that it did not see were replaced"
            self.versions.append(replace(kept, rows=(*kept.rows, kept.whole({"id": 99, "a": 0, "f": 0.0, "s": None}))))

    @rule(data=st.data())
    def read_an_old_version(self, data: st.DataObject) -> None:
        version = data.draw(st.integers(0, len(self.versions) - 1))
        self.check_version(quick(self.store), version)

    @rule(data=st.data())
    def read_changes(self, data: st.DataObject) -> None:
        """What is deleted and inserted leads from the rows of a version to those of the next."""
        if len(self.versions) < 2:
            return
        version = data.draw(st.integers(1, len(self.versions) - 1))
        before, after = self.versions[version - 1], self.versions[version]
        if before.extra.keys() != after.extra.keys():
            return
        found = quick(self.store).table(NAME).at(version=version).changes(version - 1, version).to_arrow().to_pylist()
        left = canonical(list(before.rows))
        marks = ("_change", "_version", "_committed_at")
        for kind in ("delete", "insert"):
            told = [row for row in found if row["_change"] == kind]
            plain = canonical([{name: value for name, value in row.items() if name not in marks} for row in told])
            if kind == "insert":
                left += plain
                continue
            for row in plain:
                assert row in left, "a row is deleted that was not there"
                left.remove(row)
        assert sorted(left) == canonical(list(after.rows))

    @invariant()
    def the_newest_version_is_as_the_model_says(self) -> None:
        if hasattr(self, "versions"):
            self.check_version(quick(self.store), None)

    def check_version(self, lake: underlay.Lake, version: int | None) -> None:
        model = self.now if version is None else self.versions[version]
        table = lake.table(NAME, version=version)
        assert version is not None or table.version == len(self.versions) - 1
        found = table.to_arrow().to_pylist()
        assert canonical(found) == canonical(list(model.rows))
        assert (len(table), table.count("a < 2")) == (
            len(model.rows),
            sum(row["a"] is not None and row["a"] < 2 for row in model.rows),
        )

    def teardown(self) -> None:
        if not hasattr(self, "versions"):
            return
        with self.folder:
            self.check_everything()

    def check_everything(self) -> None:
        memory_cache().start_afresh()
        lake = quick(self.store)
        for version in range(len(self.versions)):
            self.check_version(lake, version)
        for name, version in self.tags.items():
            assert lake.table(NAME, tag=name).version == version
        Checker(self.store).check()


Verbs.TestCase.settings = settings(
    max_examples=sized(8, 150),
    stateful_step_count=sized(20, 40),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestVerbs = pytest.mark.timeout(7200)(Verbs.TestCase)
