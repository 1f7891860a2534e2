"""How many rows match."""

from __future__ import annotations

from dataclasses import replace

from underlay.plan import answers
from underlay.scan.scan import Query


def count_rows(query: Query) -> int:
    """The number of rows that match: without a request when every kept block matches in full."""
    exact = answers.count_rows(query.plan) if query.rest is None else None
    if exact is not None:
        return exact
    return sum(batch.num_rows for batch in replace(query, columns=()).batches())
