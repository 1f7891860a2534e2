"""Aliases for Arrow values whose type is known only at run time.

pyarrow-stubs give every Arrow type its own class and overload each function by them. No common class has the accessors
of nested types, so these are Any.
"""

from __future__ import annotations

from typing import Any, TypeAlias

AnyArray: TypeAlias = Any
"""A `pa.Array`."""
AnyChunks: TypeAlias = Any
"""A `pa.ChunkedArray`."""
AnyScalar: TypeAlias = Any
"""A `pa.Scalar`."""
AnyType: TypeAlias = Any
"""A `pa.DataType`."""
AnyField: TypeAlias = Any
"""A `pa.Field`."""
