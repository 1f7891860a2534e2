"""Objects that are damaged at random places, and objects that somebody made up: never a wrong answer, and an error
names the object."""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Callable

import pyarrow as pa
import pytest
from deflate import crc32

import underlay
from tests.gate import sized
from tests.maintain.healthy import SALES, Truth, broken, build_small, built, run
from underlay.cache.settings import memory_cache
from underlay.errors import Damaged, Malformed, NotFound, UnderlayError
from underlay.index.sealed_json import seal, unseal
from underlay.index.sources.tree import scan_all
from underlay.store import Store
from underlay.table.coordination.intent import decode_intent
from underlay.table.coordination.lease import decode_lease
from underlay.table.coordination.run_record import decode_record

DEEP = 100_000
SEED = int(os.environ.get("UNDERLAY_TEST_SEED", "7"))


@pytest.fixture
def store() -> Store:
    return built(build_small)


def answers(store: Store) -> tuple[object, ...]:
    """What a process that has nothing in memory reads: rows of three versions, a count from metadata, sources."""
    memory_cache().start_afresh()
    table = underlay.connect(store).table(SALES)
    found = [table.at(version=version).scan().to_arrow().sort_by("id") for version in (2, 5)]
    newest = table.scan().to_arrow().sort_by([("id", "ascending"), ("value", "ascending")])
    snapshot = table.snapshot()
    sources = sorted(scan_all(snapshot.root.sources, snapshot.fetch_pages), key=lambda record: record.uri)
    return (*found, newest, table.count(), table.count("id < 3"), tuple(sources))


def answers_or_error(store: Store) -> tuple[object, ...] | UnderlayError:
    try:
        return answers(store)
    except UnderlayError as error:
        return error


KINDS: dict[str, Callable[[str], bool]] = {
    "catalog": lambda key: key.startswith("_catalog/0"),
    "root": lambda key: key.endswith(".root"),
    "segment": lambda key: "/segments/" in key,
    "source page": lambda key: "/sources/" in key,
    "file": lambda key: key.endswith(".parquet") and key.startswith("shop/"),
    "sidecar": lambda key: "/_pm/" in key,
    "hint": lambda key: key.endswith("/hint"),
}
HARMLESS = {"sidecar", "hint"}
"""What is derived: nothing depends on it."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_or_a_cut_gives_the_right_answer_or_an_error_that_names_the_object(store: Store, kind: str):
    chance = random.Random(f"{SEED} {kind}")
    truth = answers(store)
    keys = [found.key for found in store.list_objects() if KINDS[kind](found.key)]
    assert keys, f"the lake has no {kind}"
    told = 0
    for _ in range(sized(8, 150)):
        key = chance.choice(keys)
        data = bytearray(store.get(key)[0])
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        else:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        with broken(store, key, bytes(data)):
            found = answers_or_error(store)
        if isinstance(found, UnderlayError):
            assert isinstance(found, Damaged | NotFound), found
            name = key.rpartition("/")[2].removesuffix(".arrow")
            assert name in str(found), f"the error of {key} does not name it: {found}"
            told += 1
        else:
            assert found == truth, f"a wrong answer from {key}"
    assert not told if kind in HARMLESS else told
    assert answers(store) == truth


def forged(store: Store, key: str, change: Callable[[dict], None]) -> bytes:
    """A root or entry that somebody changed and sealed again."""
    content = json.loads(unseal(store.get(key)[0]))
    change(content)
    return seal(json.dumps(content, separators=(",", ":")).encode())


def spoiled(bits: str, how: str) -> str:
    data = base64.b64decode(bits)
    spoiling = {
        "cut": data[:-1],
        "longer": data + b"\0",
        "empty": b"",
        "garbage": bytes(range(40)),
        "flipped": b"\xff" + data[1:],
    }
    return base64.b64encode(spoiling[how]).decode()


@pytest.mark.parametrize("how", ["cut", "longer", "empty", "garbage", "flipped"])
@pytest.mark.parametrize("part", ["deletes", "tail"])
def test_a_deletion_vector_that_is_none_is_an_error_that_names_the_root(store: Store, part: str, how: str):
    key = Truth(store).root_keys[-1]

    def spoil(root: dict) -> None:
        if part == "deletes":
            root["deletes"] = {name: spoiled(bits, how) for name, bits in root["deletes"].items()}
        else:
            for file in root["tail"]:
                file[9] = spoiled(file[9], how) if file[9] else file[9]

    data = forged(store, key, spoil)
    if data == bytes(store.get(key)[0]):
        pytest.skip("the newest root has no deletion vector there")
    with broken(store, key, data):
        memory_cache().start_afresh()
        table = underlay.connect(store).table(SALES)
        for use in (lambda: table.scan().to_arrow(), table.count):
            with pytest.raises(Damaged) as raised:
                use()
            assert key in str(raised.value)
        assert key in str(run(store))


@pytest.mark.parametrize("where", ["extra", "schema", "delta"])
@pytest.mark.parametrize("version", ["newest", "before"])
def test_a_root_that_is_nested_too_deep_names_its_place(store: Store, where: str, version: str):
    key = Truth(store).root_keys[-1 if version == "newest" else -3]
    json_text = unseal(store.get(key)[0])
    if where == "extra":
        text = json_text[:-1] + b',"extra":' + b"[" * DEEP + b"]" * DEEP + b"}"
    elif where == "delta":
        text = json_text.replace(
            b'"delta":{', b'"delta":{"x":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b",", 1
        ).replace(b",}", b"}")
    else:
        part = b'{"id":1,"name":"a","type":"struct","fields":['
        deep = part * 70 + b'{"id":1,"name":"a","type":"int64"}' + b"]}" * 70
        text = json_text.replace(b'"fields":[', b'"fields":[' + deep + b",", 1)
    with broken(store, key, seal(text)):
        memory_cache().start_afresh()
        lake = underlay.connect(store)
        number = int(key.rpartition("/")[2].removesuffix(".root"))
        with pytest.raises(Malformed) as raised:
            lake.table(SALES).at(version=number).count()
        assert key in str(raised.value)
        report = run(store)
        assert key in str(report)


def test_an_unknown_type_names_the_root(store: Store):
    key = Truth(store).root_keys[-1]

    def change(root: dict) -> None:
        root["definition"]["schema"]["fields"][1]["type"] = "quaternion"

    with broken(store, key, forged(store, key, change)):
        memory_cache().start_afresh()
        with pytest.raises(Malformed, match="quaternion") as raised:
            underlay.connect(store).table(SALES).count()
        assert key in str(raised.value)
        assert "name" in str(raised.value)


def test_a_catalog_entry_that_is_nested_too_deep_names_its_place(store: Store):
    key = max(found.key for found in store.list_objects("_catalog") if found.key.endswith(".json"))
    text = unseal(store.get(key)[0])[:-1] + b',"extra":' + b"[" * DEEP + b"]" * DEEP + b"}"
    with broken(store, key, seal(text)), pytest.raises(Malformed) as raised:
        underlay.connect(store).tables()
    assert key in str(raised.value)


def test_a_hint_that_is_nested_too_deep_misleads_nobody(store: Store):
    truth = answers(store)
    for found in list(store.list_objects()):
        if found.key.endswith("/hint"):
            with broken(store, found.key, b"[" * DEEP):
                assert answers(store) == truth
                run(store)


@pytest.mark.parametrize("decode", [decode_intent, decode_lease, decode_record])
def test_other_objects_that_are_nested_too_deep_are_malformed(decode: Callable[[bytes], object]):
    with pytest.raises(Malformed):
        decode(seal(b'{"extra":' + b"[" * DEEP + b"]" * DEEP + b"}"))


def test_pages_that_somebody_made_up_are_malformed(store: Store):
    """Their size and checksum are right, and what is in them is not."""
    root_key = Truth(store).root_keys[-1]
    [page] = [json.loads(unseal(store.get(root_key)[0]))["sources"]["tree"]]
    key = next(found.key for found in store.list_objects() if page["id"] in found.key)
    rows = pa.ipc.open_file(pa.py_buffer(store.get(key)[0])).read_all()
    made_up: dict[str, bytes] = {"garbage": b"garbage", "nothing": b""}
    for name, table in {
        "short": rows.slice(1),
        "reversed": rows.take(list(range(len(rows)))[::-1]),
        "other columns": rows.drop_columns(["status"]),
        "nulls": rows.set_column(1, "identity", pa.nulls(len(rows), pa.string())),
        "no metadata": rows.replace_schema_metadata(None),
    }.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        made_up[name] = sink.getvalue().to_pybytes()
    for name, data in made_up.items():

        def change(root: dict, data: bytes = data) -> None:
            root["sources"]["tree"] |= {"size_bytes": len(data), "crc": crc32(data)}

        with broken(store, root_key, forged(store, root_key, change)), broken(store, key, data):
            memory_cache().start_afresh()
            table = underlay.connect(store).table(SALES)
            with pytest.raises(Damaged) as raised:
                table.append(pa.table({"id": [1]}), token="new")
            assert page["id"] in str(raised.value), name
