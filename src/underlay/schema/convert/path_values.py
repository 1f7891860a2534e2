"""Values of columns in the folders of a path, as Hive writes them: `year=2024/zone=JFK/part-0.parquet`.

Every folder named `name=value` gives a value; percent signs encode characters that a folder's name cannot have (`%2F`),
and `__HIVE_DEFAULT_PARTITION__` means null. Values are text until a column's type says what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from urllib.parse import unquote

import pyarrow as pa

from underlay.errors import InvalidRequest
from underlay.schema.arrow_aliases import AnyScalar
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.convert.default import default_scalar
from underlay.schema.types import Field, Scalar, TypeKind

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"nan|[+-]?inf(inity)?", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INTEGERS = frozenset(kind for kind in TypeKind if kind.value.startswith(("int", "uint")))
_FLOATS = (TypeKind.FLOAT16, TypeKind.FLOAT32, TypeKind.FLOAT64)

PathValues = tuple[tuple[str, str | None], ...]
"""Names and values in the order of folders; None for null."""


def path_values(path: str) -> PathValues:
    """The names and values in the folders of a path; its last part is the file.

    Raises InvalidRequest for what is not UTF-8, and for a name that occurs twice.
    """
    return _folder_values(path.rpartition("/")[0])


@lru_cache(maxsize=1024)
def _folder_values(folder: str) -> PathValues:
    found: dict[str, str | None] = {}
    for part in folder.split("/"):
        name, separator, value = part.partition("=")
        if not separator or not name:
            continue
        try:
            name, text = unquote(name, errors="strict"), unquote(value, errors="strict")
        except UnicodeDecodeError:
            raise InvalidRequest("a folder is not UTF-8", place=folder, found=part) from None
        if any(known.casefold() == name.casefold() for known in found):
            raise InvalidRequest(f"the path has two values of {name}", place=folder)
        found[name] = None if text == NULL_FOLDER else text
    return tuple(found.items())


def find_field(fields: Sequence[Field], name: str) -> Field | None:
    """The column that a folder names: the one of this name, or the only one that differs just in case."""
    exact = next((field for field in fields if field.name == name), None)
    near = [field for field in fields if field.name.casefold() == name.casefold()]
    return exact if exact is not None else near[0] if len(near) == 1 else None


@lru_cache(maxsize=4096)
def path_scalar(text: str, type_: Scalar) -> AnyScalar:
    """A value of a column's type. Raises InvalidRequest for text that is not such a value."""
    arrow = to_arrow_type(type_)
    is_text = True
    if type_.kind in _INTEGERS:
        is_text = _INTEGER.fullmatch(text) is not None
    elif type_.kind is TypeKind.DECIMAL:
        is_text = _NUMBER.fullmatch(text) is not None
    elif type_.kind in _FLOATS:
        is_text = (_NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text)) is not None
    try:
        if is_text and type_.kind in (TypeKind.BINARY, TypeKind.FIXED):
            return pa.scalar(text.encode(), arrow)
        if is_text:
            return default_scalar(Field(id=0, name="", type=type_, default=text))
    except (InvalidRequest, pa.ArrowException):
        pass
    raise InvalidRequest("the value is not one of the column's type", expected=type_, found=repr(text))


def infer_type(texts: Iterable[str | None]) -> Scalar:
    """The type of a new column with these values: whole numbers, dates, or else text."""
    values = [text for text in texts if text is not None]
    for kind, is_one in ((TypeKind.INT64, _is_int64), (TypeKind.DATE, _is_date)):
        if values and all(map(is_one, values)):
            return Scalar(kind)
    return Scalar(TypeKind.STRING)


def _is_int64(text: str) -> bool:
    return _PLAIN_INTEGER.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


def _is_date(text: str) -> bool:
    try:
        return _DATE.fullmatch(text) is not None and path_scalar(text, Scalar(TypeKind.DATE)) is not None
    except InvalidRequest:
        return False
