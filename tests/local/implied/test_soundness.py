"""Whatever a condition implies holds for every row that it is true for."""

from __future__ import annotations

from random import Random

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.gate import SEED, sized
from tests.local.random_conditions import SCHEMA, Conditions, random_rows
from underlay.errors import BadPredicate, UnderlayError
from underlay.local.conditions.condition import split_condition
from underlay.prune import matches
from underlay.prune.parse.parameters import NO_PARAMETERS

CONDITIONS = sized(30, 400)


@pytest.mark.parametrize("seed", [SEED * 1000 + at for at in range(sized(2, 15))])
def test_a_row_for_which_a_condition_is_true_matches_what_it_implies(seed):
    assert [*violations(Random(seed), CONDITIONS)] == []


def violations(random: Random, count: int):
    """Conditions that imply too much."""
    rows = pa.concat_tables([random_rows(random, 25, 25 * at) for at in range(8)])
    conditions = Conditions(random)
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("given", rows)
        connection.execute("CREATE TABLE rows AS SELECT * FROM given")
        for _ in range(count):
            where = conditions(random.choice([0, 1]))
            text = where.replace("X'FF00'", "from_hex('FF00')")  # DuckDB takes it for text
            try:
                keys = connection.execute(f"SELECT k FROM rows WHERE {text}").to_arrow_table()["k"]
                predicate, _ = split_condition(where, SCHEMA, BadPredicate(""), NO_PARAMETERS)
            except (duckdb.Error, UnderlayError):
                continue
            true = rows.filter(pc.is_in(rows["k"], value_set=keys.combine_chunks()))
            found = matches(predicate, true).to_numpy(zero_copy_only=False)
            if not found.all():
                yield where, str(predicate), true.filter(pa.array(~found)).to_pylist()[0]
