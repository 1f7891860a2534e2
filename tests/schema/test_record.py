from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from tests.schema.examples import schemas
from underlay.errors import Malformed
from underlay.schema.record import FieldRecord, SchemaRecord, from_record, to_record
from underlay.schema.table_schema import TableSchema


@given(schemas())
def test_a_schema_comes_back_from_its_record(schema: TableSchema):
    packed = msgspec.msgpack.encode(to_record(schema))
    assert from_record(msgspec.msgpack.decode(packed, type=SchemaRecord)) == schema


def test_a_list_without_an_element_is_malformed():
    record = SchemaRecord(fields=(FieldRecord(id=1, name="a", type="list"),), last_id=1)
    with pytest.raises(Malformed, match="the wrong number of parts"):
        from_record(record)


def test_an_unknown_type_is_refused():
    record = SchemaRecord(fields=(FieldRecord(id=1, name="a", type="int7"),), last_id=1)
    with pytest.raises(Malformed, match="type that does not exist"):
        from_record(record)
