"""Credentials are in nothing that a debugger, a log or a notebook shows of a lake."""

from __future__ import annotations

import json
import os
import pickle

import pyarrow as pa

import underlay as ul
from tests.store.servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server
from underlay.store.open import StoreOptions


def test_attributes_of_a_store_and_a_lake_show_no_credentials(moto: S3Server):
    options = {name: str(value) for name, value in moto.options.items()}
    url = f"s3://{BUCKET}/{os.urandom(6).hex()}"
    lake = ul.connect(url, options=options, registry=f"postgresql://some:{SECRET_KEY}@127.0.0.1:1/none")
    lake.create_table("some.table", "id bigint").append(pa.table({"id": [1]}))
    assert lake.table("some.table").count() == 1
    seen: dict[int, object] = {}
    waiting: list[object] = [lake]
    while waiting:
        one = waiting.pop()
        named = {**getattr(one, "__dict__", {}), **{name: getattr(one, name, None) for name in _slots(one)}}
        if id(one) in seen or not type(one).__module__.startswith("underlay"):
            continue
        seen[id(one)] = one
        shown = f"{one!r} {named!r}"
        assert SECRET_KEY not in shown, type(one)
        assert ACCESS_KEY not in shown, type(one)
        waiting += named.values()
    kinds = {type(one).__name__ for one in seen.values()}
    assert {"Lake", "LakeContext", "RemoteStore", "FileStores", "StoreOptions", "Registry", "Database"} <= kinds
    assert dict(lake.options) == options
    assert SECRET_KEY not in f"{dict(lake.options)} {lake.options.items()} {[*lake.options.values()]} {lake.options}"


def test_options_show_what_is_no_credential():
    given = {"region": "r", "secret_access_key": "hush", "proxy_url": "http://me:hush@proxy", "endpoint": "http://s"}
    options = StoreOptions(given)
    assert repr(options) == (
        "StoreOptions({'region': 'r', 'secret_access_key': '***', 'proxy_url': '***', 'endpoint': 'http://s'})"
    )
    kept = pickle.loads(pickle.dumps(options))
    assert (kept, repr(kept)) == (options, repr(options))
    assert f"{options['secret_access_key']}" == "hush"
    assert json.loads(json.dumps(options)) == given


def _slots(one: object) -> list[str]:
    return [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ()) if name != "__weakref__"]
