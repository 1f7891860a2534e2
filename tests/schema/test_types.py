from __future__ import annotations

import pytest

from tests.schema.examples import SCALARS
from underlay.errors import InvalidRequest
from underlay.schema.types import parse_scalar


@pytest.mark.parametrize("scalar", SCALARS, ids=str)
def test_a_scalar_is_read_back_from_its_text(scalar):
    assert parse_scalar(str(scalar)) == scalar


@pytest.mark.parametrize(
    "text", ["decimal(39, 0)", "decimal(5, 6)", "decimal(5)", "fixed(0)", "time(min)", "timestamp", "int32(4)", "int"]
)
def test_a_type_that_does_not_exist_is_refused(text):
    with pytest.raises(InvalidRequest):
        parse_scalar(text)
