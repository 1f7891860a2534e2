"""What DuckDB pushes into a dataset, and what it answers over one that filters as it is told."""

from __future__ import annotations

import pyarrow.dataset as ds

from underlay.prune import TRUE, matches
from underlay.prune.parse.arrow import from_arrow


class Pushed(ds.Dataset):
    """Rows that remember the filters they were scanned with, and apply the predicates of them, or none."""

    def __init__(self, table, *, applies=True):
        self.table, self.applies, self.filters = table, applies, []

    @property
    def schema(self):
        return self.table.schema

    def scanner(self, columns=None, filter=None, **_):  # pyarrow's own name
        if filter is not None:
            self.filters.append(filter)
        predicate = from_arrow(filter, self.schema) if self.applies and filter is not None else TRUE
        rows = self.table.filter(matches(predicate, self.table))
        return ds.Scanner.from_batches(rows.to_batches(), schema=self.schema, columns=columns)


def answer(database, rows, where):
    """The keys `k` of the rows that DuckDB finds, in a dataset or in a table of its own by name."""
    if not isinstance(rows, str):
        database.register("pushed", rows)
        rows = "pushed"
    return [key for (key,) in database.execute(f"SELECT k FROM {rows} WHERE {where} ORDER BY k").fetchall()]


def pushed_down(database, table, where):
    """The filter that DuckDB hands to a dataset, or None."""
    rows = Pushed(table, applies=False)
    answer(database, rows, where)
    return rows.filters[-1] if rows.filters else None
