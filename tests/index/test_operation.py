from __future__ import annotations

import pickle

import msgspec
import pytest
from msgspec.structs import replace

from underlay.index.operation import Operation
from underlay.index.outline import decode_outline
from underlay.index.root import Definition, decode_root, encode_root
from underlay.index.state import first_root
from underlay.schema.record import SchemaRecord

NEWER = Operation("teleport")
ROOT = replace(
    first_root(
        Definition(schema=SchemaRecord(fields=(), last_id=0)),
        commit_id="0",
        now_us=1,
        writer="w",
    ),
    operation=NEWER,
)


def test_every_operation_adds_changes_or_keeps_rows():
    for operation in Operation:
        assert operation.is_known
        assert operation.keeps_rows is not (operation.adds_rows or operation.changes_rows)


@pytest.mark.parametrize(
    ("operation", "adds", "changes"),
    [
        (Operation.APPEND, True, False),
        (Operation.INGEST, True, True),
        (Operation.UPSERT, False, True),
        (Operation.ROLLBACK, False, True),
        (Operation.COMPACT, False, False),
        (Operation.ADD_COLUMNS, False, False),
    ],
)
def test_what_operations_do_to_rows(operation: Operation, adds: bool, changes: bool):
    assert (operation.adds_rows, operation.changes_rows) == (adds, changes)


def test_an_operation_is_stored_as_its_text():
    assert msgspec.json.encode(Operation.ADD_COLUMNS) == b'"add columns"'
    assert msgspec.json.decode(b'"add columns"', type=Operation) is Operation.ADD_COLUMNS


def test_nothing_is_claimed_about_an_operation_of_a_newer_version():
    assert [NEWER.is_known, NEWER.adds_rows, NEWER.changes_rows, NEWER.keeps_rows] == [False] * 4
    assert NEWER == "teleport"
    assert pickle.loads(pickle.dumps(NEWER)) == NEWER
    assert NEWER not in list(Operation)


def test_a_root_with_an_operation_of_a_newer_version_is_read_and_keeps_its_text():
    assert decode_root(encode_root(ROOT)) == ROOT
    assert decode_root(encode_root(ROOT)).operation.value == "teleport"
    assert decode_outline(encode_root(ROOT)).operation.value == "teleport"


def test_an_operation_is_text():
    with pytest.raises(ValueError, match="7 is not a valid Operation"):
        Operation(7)  # type: ignore[arg-type]  # on purpose
