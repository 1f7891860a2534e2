"""Constants of registered files: columns given by the folders of a path, checked against the file's own columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from underlay.errors import InvalidRequest
from underlay.index.constants import constant_of
from underlay.index.entry import FileConstant
from underlay.index.intake.constant_files import ConstantBounds, ConstantFiles, constant_bounds
from underlay.index.intake.schema_match import Misfit
from underlay.index.segment.bounds import pack_key
from underlay.index.segment.segment import Segment
from underlay.plan.leaf_bounds import file_bounds
from underlay.prune import ColumnBounds
from underlay.schema.convert.path_values import NULL_FOLDER, find_field, path_scalar, path_values
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, Scalar

Constants = tuple[FileConstant, ...]
_NO_HIVE = "Or leave the folders of the path alone: --no-hive, hive=False."


def path_constants(paths: Sequence[str], schema: TableSchema, *, ignore_surplus: bool) -> list[Constants | Misfit]:
    """The constants in the folders of each path, or why they do not fit the table. `ignore_surplus` allows names that
    the table does not have."""
    found: dict[str, Constants | Misfit] = {}
    folders = [path.rpartition("/")[0] for path in paths]
    for folder, path in zip(folders, paths, strict=True):
        if folder not in found:
            found[folder] = _constants(path, schema, ignore_surplus=ignore_surplus)
    return [found[folder] for folder in folders]


def _constants(path: str, schema: TableSchema, *, ignore_surplus: bool) -> Constants | Misfit:
    constants: list[FileConstant] = []
    reasons: list[str] = []
    try:
        values = path_values(path)
    except InvalidRequest as error:
        return Misfit((f"{error.problem}.", _NO_HIVE))
    for name, text in values:
        field = find_field(schema.fields, name)
        if field is None and not ignore_surplus:
            reasons.append(f"Column {name} is in the path and not in the table.")
        elif field is not None:
            found = _constant(field, text)
            if isinstance(found, FileConstant):
                constants.append(found)
            else:
                reasons.append(found)
    return Misfit((*reasons, _NO_HIVE)) if reasons else tuple(constants)


def _constant(field: Field, text: str | None) -> FileConstant | str:
    if not isinstance(field.type, Scalar):
        return f"Column {field.name} is {field.type} in the table, which a path cannot give."
    if text is None and field.is_required:
        return f"Column {field.name} is required in the table and null ({NULL_FOLDER}) in the path."
    try:
        return constant_of(field, None if text is None else path_scalar(text, field.type))
    except InvalidRequest:
        return f"Column {field.name} is {field.type} in the table and {text!r} in the path."


def given_fields(constants: Constants) -> frozenset[int]:
    """The columns to which the path gives a value."""
    return frozenset(constant.field for constant in constants if constant.value is not None)


def with_constants(
    files: Segment, constants: Sequence[Constants], schema: TableSchema
) -> tuple[Segment, dict[int, Misfit]]:
    """The files with the constants that are not columns of their own, and by position why some contradict their paths:
    a column that is in both path and file must, by the file's statistics, have only the path's value there."""
    if not any(constants):
        return files, {}
    reasons: dict[int, list[str]] = {}
    kept: list[list[FileConstant]] = [list(of_file) for of_file in constants]
    for ident in sorted({constant.field for of_file in constants for constant in of_file}):
        leaf = schema.leaf_by_id[ident]
        has_column = files.columns_of(ident) >= 0
        bounds = file_bounds(files, leaf) if has_column.any() else None
        for row in np.flatnonzero(has_column).tolist():
            constant = next((one for one in kept[row] if one.field == ident), None)
            if constant is None or bounds is None:
                continue
            kept[row].remove(constant)
            if not _holds_only(bounds, row, constant_bounds(constant, leaf.type), leaf.type):
                shown = NULL_FOLDER if constant.value is None else constant.value
                reasons.setdefault(row, []).append(
                    f"Column {leaf.path[0]} is {shown} in the path and also in the file, whose statistics do not say "
                    "that all of its rows have this value."
                )
    misfits = {row: Misfit((*of_file, _NO_HIVE)) for row, of_file in reasons.items()}
    if not any(kept):
        return files, misfits
    return Segment(ConstantFiles(files, kept, schema), files.file_count), misfits


def _holds_only(bounds: ColumnBounds, row: int, wanted: ConstantBounds, type_: Scalar) -> bool:
    """Whether all rows of a file have the constant's value, proven by its statistics."""
    if wanted.is_null:
        return bool(bounds.is_all_null[row])
    (ranges,) = bounds.ranges
    is_known = ranges.has_minimum[row] and ranges.has_maximum[row] and bounds.null_count[row] == 0
    if wanted.low is None or wanted.high is None or not is_known or bounds.may_hold_nan[row]:
        return False
    low, high = ranges.minimum[row], ranges.maximum[row]
    if isinstance(wanted.low, float):
        return bool(low == wanted.low and high == wanted.high)
    is_whole = wanted.low == wanted.high  # longer text was truncated
    key = pack_key(wanted.low, type_)
    return is_whole and pack_key(low, type_) == key and pack_key(high, type_) == key
