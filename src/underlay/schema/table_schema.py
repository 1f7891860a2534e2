"""The columns of a table: fields with ids, and the leaves, for which files have chunks and statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from underlay.errors import UnknownColumn, name_hint
from underlay.runtime.locks import cached_property
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafColumn:
    """A scalar field and the way to it. `id` is the field's own.

    `is_repeated`: a list or map lies on the way, so that a row may have none or many values of it. `is_required`: no
    row is null here, since the field and every struct around it are required.
    """

    id: int
    path: tuple[str, ...]
    type: Scalar
    is_repeated: bool
    is_required: bool
    default: str | None


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """All columns in order. `last_id` is the greatest field id that the table ever had."""

    fields: tuple[Field, ...]
    last_id: int

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.fields, self.last_id))

    @cached_property
    def leaves(self) -> tuple[LeafColumn, ...]:
        """Every scalar field, depth first, as Parquet orders its leaves."""
        return tuple(leaf for field in self.fields for leaf in leaves_in(field))

    @cached_property
    def leaf_by_id(self) -> dict[int, LeafColumn]:
        """The leaves by field id."""
        return {leaf.id: leaf for leaf in self.leaves}

    @cached_property
    def leaf_by_path(self) -> dict[tuple[str, ...], LeafColumn]:
        """The leaves by path. Names are compared as they are, upper and lower case apart."""
        return {leaf.path: leaf for leaf in self.leaves}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.name for field in self.fields)

    def column(self, name: str) -> Field:
        """The column of this name. Raises UnknownColumn."""
        found = self._by_name.get(name)
        if found is None:
            raise UnknownColumn(f"there is no column {name}", hint=name_hint(name, self.names))
        return found

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}


def leaves_in(field: Field) -> Iterator[LeafColumn]:
    """The leaves of one column, in order."""
    return _leaves(field, (), False, True)


def _leaves(field: Field, above: tuple[str, ...], is_repeated: bool, is_required: bool) -> Iterator[LeafColumn]:
    path = (*above, field.name)
    is_required = is_required and field.is_required
    match field.type:
        case Scalar():
            yield LeafColumn(
                id=field.id,
                path=path,
                type=field.type,
                is_repeated=is_repeated,
                is_required=is_required and not is_repeated,
                default=field.default,
            )
        case StructOf(fields):
            for inner in fields:
                yield from _leaves(inner, path, is_repeated, is_required)
        case ListOf(element):
            yield from _leaves(element, path, True, is_required)
        case MapOf(key, value):
            yield from _leaves(key, path, True, is_required)
            yield from _leaves(value, path, True, is_required)
