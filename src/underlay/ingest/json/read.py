"""JSON lines as rows: each line is an object, decoded and checked by the table's types.

Arrow's own reader is not used: it ends the process for a line `null`, takes two objects in a line for two rows, and
takes decimals with too many digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from underlay.errors import SourceUnreadable
from underlay.ingest.csv.blocks import Blocks, CsvBlock
from underlay.ingest.csv.records import LINES
from underlay.ingest.json.values import Values, is_unset, json_fields, line_decoder, to_array
from underlay.ingest.rows.misfits import UNFIT, find_bad, fit
from underlay.ingest.rows.reading import RAW_BYTES, Rejected, RowRules, TakenRows, shown
from underlay.ingest.rows.schema_drift import new_column
from underlay.ingest.source.decompressed import Plain
from underlay.schema.arrow_aliases import AnyArray, AnyScalar
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.convert.default import default_scalar
from underlay.schema.types import Field

_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$\.?(.*)`)?", re.DOTALL)
_MISTYPED = re.compile(r"Expected `(.*?)`, got `(.*?)`(?: - at `\$\.?(.*)`)?", re.DOTALL)
_UNDECODED = (msgspec.MsgspecError, ValueError, RecursionError)


def read_json(plain: Plain, reading: RowRules) -> Iterator[TakenRows]:
    """The rows of a source of JSON lines. An empty source has none. Raises SourceUnreadable, SchemaMismatch."""
    blocks = Blocks(plain, block_bytes=reading.block_bytes, record_bytes=reading.record_bytes)
    check_lines(blocks.begin(), plain.name)
    lines = _Lines(decoder=line_decoder(reading), reading=reading, source=plain.name)
    for block in blocks.cut(LINES):
        rows, rejected = lines.read(block)
        yield TakenRows(rows=rows, rejected=rejected, read_bytes=plain.read_bytes())


def check_lines(head: bytes, name: str) -> None:
    """Raise SourceUnreadable when a source that begins so is one JSON array or a pretty-printed object."""
    text = head.lstrip()
    first, line_break, _ = text.partition(b"\n")
    if text.startswith(b"["):
        what, filter_ = "a JSON array", ".[]"
    elif line_break and first.strip() == b"{":
        what, filter_ = "a JSON object over several lines", "."
    else:
        return
    raise SourceUnreadable(
        f"this is {what}; Underlay reads JSON lines: one object per line",
        place=name,
        hint=f"Convert it with jq -c '{filter_}'.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    decoder: msgspec.json.Decoder[msgspec.Struct]
    reading: RowRules
    source: str

    def read(self, block: CsvBlock) -> tuple[pa.Table, tuple[Rejected, ...]]:
        if block.rejected is not None:
            return to_arrow(self.reading.schema).empty_table(), (block.rejected,)
        lines = block.data.split(b"\n")
        places = [at for at, line in enumerate(lines) if line and not line.isspace()]
        found, reasons = self._decode(block, lines, places)
        places = [at for at in places if at not in reasons] if reasons else places
        columns: list[Values] = [list(map(attrgetter(name), found)) for name in self.decoder.type.__struct_fields__]
        arrays, unfit = self._arrays(columns)
        if unfit:
            reasons |= {places[row]: reason for row, reason in unfit.items()}
            places = [at for row, at in enumerate(places) if row not in unfit]
            columns = [[value for row, value in enumerate(column) if row not in unfit] for column in columns]
            arrays, _ = self._arrays(columns)
        rows, misfits = fit(self._table(arrays, len(places)), self.reading.schema)
        reasons |= {places[row]: reason for row, reason in misfits.items()}
        return rows, _rejected(block, lines, reasons)

    def _decode(
        self, block: CsvBlock, lines: list[bytes], places: list[int]
    ) -> tuple[list[msgspec.Struct], dict[int, str]]:
        decode = self.decoder.decode
        try:
            return [decode(lines[at]) for at in places], {}
        except _UNDECODED:
            found, reasons = [], {}
        for at in places:
            try:
                found.append(decode(lines[at]))
            except _UNDECODED as error:
                self._refuse_new_column(str(error), block.line + at)
                reasons[at] = _reason(str(error))
        return found, reasons

    def _refuse_new_column(self, problem: str, line: int) -> None:
        unknown = _UNKNOWN.fullmatch(problem)
        if unknown is not None:
            above = tuple((unknown[2] or "").replace("[...]", ".element").split(".")) if unknown[2] else ()
            raise new_column((*above, unknown[1]), self.reading.schema.names, f"{self.source}, line {line}")

    def _arrays(self, columns: list[Values]) -> tuple[list[AnyArray], dict[int, str]]:
        """The columns; and why rows do not fit, by position, when their values do not convert."""
        fields = json_fields(self.reading)
        arrays: list[AnyArray] = []
        reasons: dict[int, str] = {}
        for values, field in zip(columns, fields, strict=True):
            try:
                arrays.append(_column(values, field))
            except UNFIT:
                for row in _unfit_rows(values, field):
                    value = msgspec.to_builtins(values[row], enc_hook=str)
                    reasons.setdefault(row, f"column {field.name}: {shown(value)} is not a valid {field.type}")
        return arrays, reasons

    def _table(self, arrays: list[AnyArray], count: int) -> pa.Table:
        table = pa.Table.from_arrays(arrays, names=[field.name for field in json_fields(self.reading)])
        if self.reading.source_column is None:
            return table
        return table.append_column(self.reading.source_column, pa.repeat(self.source, count))


def _reason(problem: str) -> str:
    """What msgspec says of a line, with the column first."""
    found = _MISTYPED.fullmatch(problem)
    if found is None:
        return problem
    wanted = found[1].removesuffix(" | null")
    place = f"column {found[3]}: " if found[3] else ""
    return f"{place}expected {wanted}, found {found[2]}"


def _column(values: Values, field: Field) -> AnyArray:
    """The values of a column, and its default where the key was missing."""
    default = default_scalar(field)
    if default is None:
        return to_array(values, field)
    unset = is_unset(values)
    found = to_array([None if missing else value for missing, value in zip(unset, values, strict=True)], field)
    if not any(unset):
        return found
    return _filled(found, default, pa.array(unset))


def _filled(found: AnyArray, default: AnyScalar, unset: AnyArray) -> AnyArray:
    if isinstance(found, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(found.type, _filled(found.storage, default.value, unset))
    return pc.if_else(unset, default, found)


def _unfit_rows(values: Values, field: Field) -> list[int]:
    found: list[int] = find_bad(len(values), lambda part: _column(values[part], field)).tolist()
    return found


def _rejected(block: CsvBlock, lines: list[bytes], reasons: dict[int, str]) -> tuple[Rejected, ...]:
    if not reasons:
        return ()
    begins = np.cumsum([0, *(len(line) + 1 for line in lines)])
    return tuple(
        Rejected(
            line=block.line + at,
            offset=block.offset + int(begins[at]),
            reason=reasons[at],
            raw=lines[at].removesuffix(b"\r")[:RAW_BYTES],
        )
        for at in sorted(reasons)
    )
