"""Works on their way to other processes."""

from __future__ import annotations

from underlay.api.lake import connect
from underlay.change.rows.staged import Staging
from underlay.ingest.work.work_unit import WorkUnit, decode_work, encode
from underlay.store.open import StoreOptions


def test_credentials_of_a_lake_arrive_and_are_not_shown():
    options = {"secret_access_key": "hush", "region": "r"}
    table = connect("memory://works", registry="none").create_table("a.b", "i bigint")
    staging = Staging(folder="f", definition=table.definition, next_block=0)
    work = WorkUnit(run="r", at_us=1, sources=(), staging=staging, store_options=dict(StoreOptions(options)))
    arrived = decode_work(encode(work))
    assert arrived.store_options == options
    assert "hush" not in repr(arrived)
