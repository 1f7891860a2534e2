from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.schema.examples import SCALARS
from underlay.prune import TimesOfDay, Unit, Unordered
from underlay.schema.bound_storage import Storage, bound_domain, storage_of
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.convert.stored_values import stored_array
from underlay.schema.types import parse_scalar


@pytest.mark.parametrize("scalar", SCALARS, ids=str)
def test_a_type_has_an_order_exactly_when_its_bounds_are_stored(scalar):
    assert isinstance(bound_domain(scalar), Unordered) == (storage_of(scalar) is Storage.NONE)


@pytest.mark.parametrize("scalar", [s for s in SCALARS if storage_of(s) is not Storage.NONE], ids=str)
def test_stored_values_have_the_storage_of_their_type(scalar):
    found = stored_array(pa.nulls(3, to_arrow_type(scalar)), scalar)
    if storage_of(scalar) is Storage.BYTES:
        assert (found.type, found.null_count) == (pa.binary(), 3)
    else:
        assert found.dtype == np.dtype(storage_of(scalar).value)
        assert found.tolist() == [0, 0, 0]


def test_a_time_is_ordered_by_its_own_unit():
    assert bound_domain(parse_scalar("time(ms)")) == TimesOfDay(Unit.MILLISECOND)
