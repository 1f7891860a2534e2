"""A process that takes a job, begins an append, and goes on with it when its input says so.

python -m tests.table.coordination.races.holder URL OPTIONS

It prints `working` when it has read the table's head and asks for the rows, and in the end what came of it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pyarrow as pa

import underlay
from underlay.errors import UnderlayError
from underlay.store import open_store


def rows() -> Iterator[pa.RecordBatch]:
    print("working", flush=True)
    sys.stdin.readline()
    yield pa.record_batch({"id": pa.array([1, 2, 3], pa.int64())})


def run(url: str, options: dict[str, str]) -> None:
    table = underlay.connect(open_store(url, options)).table("taxi.trips")
    with table.job("nightly") as job:
        try:
            job.table.append(pa.RecordBatchReader.from_batches(pa.schema({"id": pa.int64()}), rows()))
        except UnderlayError as error:
            print(type(error).__name__, job.epoch, job.renew(), job.is_lost, flush=True)
        else:
            print("appended", job.epoch, job.renew(), job.is_lost, flush=True)


if __name__ == "__main__":
    run(sys.argv[1], json.loads(sys.argv[2]))
