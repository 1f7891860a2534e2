"""Random tables and conditions: what a pruned scan finds is what plain Python finds in all rows."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.contract.pruning.kinds import FLOATING, IN_SECONDS, KINDS, TEXTUAL, Kind
from tests.contract.pruning.oracle import answer
from tests.contract.worlds import World, add_column, delete_positions
from tests.gate import sized
from underlay import col
from underlay.prune import Predicate
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.convert.default import format_default
from underlay.store import open_store

EXAMPLES = int(os.environ.get("UNDERLAY_FUZZ_EXAMPLES", sized("40", "200")))
SHRINKS = "UNDERLAY_FUZZ_SHRINK" in os.environ
"""Making a failing case smaller takes minutes."""
CONDITIONS = 6
DROPPED_FLOOR = 0.2
"""The least share of blocks that all conditions together must spare."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Late:
    """A column that is added after the first rows, with the default that these then have."""

    name: str
    default: Any


@dataclass(frozen=True)
class Case:
    """Rows by file, how each file came in, and how the table is laid out."""

    kinds: dict[str, str]
    files: list[list[Row]]
    is_registered: list[bool]
    block_rows: int
    sort_by: list[str]
    partition_by: list[str]
    late: Late | None
    deleted: frozenset[int]


def values_of(kind: str) -> st.SearchStrategy[Any]:
    return st.one_of(st.sampled_from(KINDS[kind].values), st.sampled_from(KINDS[kind].values), st.none())


@st.composite
def cases(draw: st.DrawFn) -> Case:
    chosen = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True))
    kinds = {f"c{number}": kind for number, kind in enumerate(chosen)}
    late = None
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(kinds)))
        default = draw(values_of(kinds[name])) if kinds[name] != "binary" else None
        late = Late(name, default)
    rows = st.fixed_dictionaries({name: values_of(kind) for name, kind in kinds.items()})
    files = draw(st.lists(st.lists(rows, min_size=1, max_size=8), min_size=1, max_size=3))
    may_register = not IN_SECONDS & set(chosen)
    columns = st.sampled_from([name for name in sorted(kinds) if kinds[name] != "half"] or [""])
    partition = draw(st.one_of(st.none(), columns)) if late is None else None
    is_registered = [may_register and not partition and draw(st.booleans()) for _ in files]
    count = sum(map(len, files))
    return Case(
        kinds=kinds,
        files=files,
        is_registered=is_registered,
        block_rows=draw(st.integers(1, 4)),
        sort_by=[name for name in [draw(st.one_of(st.none(), columns))] if name],
        partition_by=[partition] if partition else [],
        late=late,
        deleted=draw(st.frozensets(st.integers(0, count - 1), max_size=3)),
    )


def leaves(name: str, kind: str) -> st.SearchStrategy[Predicate]:
    literal = st.sampled_from(KINDS[kind].literals)
    column = col(name)
    forms = [
        literal.map(lambda v: column == v),
        literal.map(lambda v: column != v),
        literal.map(lambda v: column < v),
        literal.map(lambda v: column <= v),
        literal.map(lambda v: column > v),
        literal.map(lambda v: column >= v),
        st.tuples(literal, literal).map(lambda pair: column.between(*pair)),
        st.lists(st.one_of(literal, st.none()), min_size=1, max_size=3).map(column.is_in),
        st.lists(st.one_of(literal, st.none()), min_size=1, max_size=3).map(column.is_not_in),
        st.one_of(literal, st.none()).map(column.is_same),
        st.one_of(literal, st.none()).map(column.is_different),
        st.just(column.is_null()),
        st.just(column.is_not_null()),
    ]
    if kind in TEXTUAL:
        forms.append(literal.map(lambda v: column.starts_with(v[:1])))
    if kind == "string":
        forms.append(st.sampled_from(["%", "a%", "_", "", "a_%", "%b", "\U0010ffff%"]).map(column.like))
    if kind in FLOATING:
        forms += [st.just(column.is_nan()), st.just(column.is_not_nan())]
    return st.one_of(forms)


def conditions(kinds: dict[str, str]) -> st.SearchStrategy[Predicate]:
    one = st.one_of([leaves(name, kind) for name, kind in kinds.items()])
    return st.recursive(
        one,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
            st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
            inner.map(lambda part: ~part),
        ),
        max_leaves=4,
    )


def arrow_table(case: Case, rows: list[Row], names: list[str], first: int) -> pa.Table:
    columns = {name: KINDS[case.kinds[name]].array([row[name] for row in rows]) for name in names}
    return pa.table({**columns, "n": range(first, first + len(rows))})


def build(case: Case) -> tuple[World, list[Row]]:
    """The table, and its rows as Python has them, with their numbers as `n`."""
    world = World(open_store(f"memory://{os.urandom(8).hex()}"))
    types = {name: KINDS[kind].type for name, kind in case.kinds.items()} | {"n": pa.int64()}
    late = case.late
    first_names = [name for name in types if late is None or name != late.name]
    table = world.create(
        pa.schema([(name, types[name]) for name in first_names]),
        block_rows=case.block_rows,
        sort_by=[name for name in case.sort_by if name in first_names],
        partition_by=case.partition_by,
    )
    model: list[Row] = []
    for number, (rows, is_registered) in enumerate(zip(case.files, case.is_registered, strict=True)):
        if late is not None and number == 1:
            add_late(table, late, KINDS[case.kinds[late.name]])
        names = [name for name in (first_names if number == 0 else types) if name != "n"]
        data = arrow_table(case, rows, names, len(model))
        if is_registered:
            options = {"use_dictionary": number == 1, "write_statistics": number != 2 or len(rows) % 2 == 0}
            table.register(world.put_parquet(data, row_group_size=case.block_rows, **options))
        else:
            table.append(data)
        for row in rows:
            has_default = late is not None and number == 0 and len(case.files) > 1
            known = {**row, late.name: late.default} if late is not None and has_default else row
            model.append({**known, "n": len(model)})
    if late is not None and len(case.files) == 1:
        add_late(table, late, KINDS[case.kinds[late.name]])
        model = [{**row, late.name: late.default} for row in model]
    delete_numbers(table, case.deleted)
    return world, [row for row in model if row["n"] not in case.deleted]


def add_late(table: Any, late: Late, kind: Kind) -> None:
    (field,) = from_arrow(pa.schema([(late.name, kind.type)])).fields
    default = None if late.default is None else format_default(kind.array([late.default])[0], field.type)
    add_column(table, late.name, str(field.type), default)


def delete_numbers(table: Any, numbers: frozenset[int]) -> None:
    if not numbers:
        return
    order = table.scan(["n"]).to_arrow()["n"].to_pylist()
    positions: dict[int, list[int]] = {}
    begin = 0
    for at, file in enumerate(table.plan().choices.files()):
        end = begin + int(file.block_rows.sum())
        found = [place for place, number in enumerate(order[begin:end]) if number in numbers]
        if found:
            positions[at] = found
        begin = end
    delete_positions(table, positions)


def check(table: Any, case: Case, rows: list[Row], where: Predicate, spent: Counter[str]) -> None:
    kinds = {name: KINDS[kind] for name, kind in case.kinds.items()}
    keys = {
        row["n"]: {n: None if row[n] is None else kinds[n].value_key(row[n]) for n in kinds} for row in rows
    }  # fmt: skip
    expected = sorted(number for number, row in keys.items() if answer(where, row, kinds) is True)
    assert sorted(table.scan(["n"], where).to_arrow()["n"].to_pylist()) == expected, where
    assert table.count(where) == len(expected), where
    plan = table.plan(where=where)
    assert plan.count() in (None, len(expected)), where
    for name, kind in kinds.items():
        found = [keys[number][name] for number in expected if keys[number][name] is not None]
        for extreme, of in ((plan.minimum(name), min), (plan.maximum(name), max)):
            if extreme is not None:
                assert kind.scalar_key(extreme) == (of(found) if found else None), (where, name)
    spent["blocks"] += plan.total.blocks
    spent["kept"] += plan.kept.blocks
    spent["counted"] += plan.count() is not None
    spent["conditions"] += 1


def test_a_pruned_scan_finds_what_a_full_one_finds():
    spent: Counter[str] = Counter()

    @settings(
        max_examples=EXAMPLES,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate, *([Phase.shrink] if SHRINKS else [])],
    )
    @given(case=cases(), data=st.data())
    def run(case: Case, data: st.DataObject) -> None:
        world, rows = build(case)
        table = world.lake.table("shop.sales")
        for _ in range(CONDITIONS):
            check(table, case, rows, data.draw(conditions(case.kinds)), spent)

    run()
    assert 1 - spent["kept"] / spent["blocks"] > DROPPED_FLOOR
    assert spent["counted"] > spent["conditions"] / 10
