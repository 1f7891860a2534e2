"""Reads JSON as rows: each record is an object, decoded and checked by the table's types.

Arrow's own reader is not used: a line `null` crashes the process, it reads two objects in a line as two rows, and it
accepts decimals with too many digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from operator import attrgetter

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from underlay.ingest.json.records import JsonBatch, json_batches
from underlay.ingest.json.values import LineDecoder, Values, is_unset, json_fields, line_decoder, to_array
from underlay.ingest.rows.misfits import UNFIT, find_bad, fit
from underlay.ingest.rows.reading import RAW_BYTES, Rejected, RowRules, TakenRows, shown
from underlay.ingest.rows.schema_drift import new_column, table_names
from underlay.ingest.source.decompressed import Plain
from underlay.schema.arrow_aliases import AnyArray, AnyScalar
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.convert.default import default_scalar
from underlay.schema.types import Field
from underlay.values.no_rows import no_rows

_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$\.?(.*)`)?", re.DOTALL)
_MISTYPED = re.compile(r"Expected `(.*?)`, got `(.*?)`(?: - at `\$\.?(.*)`)?", re.DOTALL)
_UNDECODED = (msgspec.MsgspecError, ValueError, RecursionError)


def read_json(plain: Plain, reading: RowRules) -> Iterator[TakenRows]:
    """The rows of a source of JSON. An empty source has none. Raises SourceUnreadable, SchemaMismatch."""
    records = _Records(decoder=line_decoder(reading), reading=reading, source=plain.name)
    for batch in json_batches(plain, block_bytes=reading.block_bytes, record_bytes=reading.record_bytes):
        rows, rejected = records.read(batch)
        yield TakenRows(rows=rows, rejected=rejected, read_bytes=plain.read_bytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Records:
    decoder: LineDecoder
    reading: RowRules
    source: str
    renamed: dict[tuple[tuple[str, str], ...], LineDecoder] = dataclass_field(default_factory=dict)
    """Decoders for records whose keys differ from column names in case, by these columns and keys."""

    def read(self, batch: JsonBatch) -> tuple[pa.Table, tuple[Rejected, ...]]:
        places = [at for at, text in enumerate(batch.texts) if text and not text.isspace()]
        if not places:
            return no_rows(to_arrow(self.reading.schema)), batch.rejected
        found, reasons = self._decode(batch, places)
        places = [at for at in places if at not in reasons] if reasons else places
        columns: list[Values] = [list(map(attrgetter(name), found)) for name in self.decoder.type.__struct_fields__]
        arrays, unfit = self._arrays(columns)
        if unfit:
            reasons |= {places[row]: reason for row, reason in unfit.items()}
            places = [at for row, at in enumerate(places) if row not in unfit]
            columns = [[value for row, value in enumerate(column) if row not in unfit] for column in columns]
            arrays, _ = self._arrays(columns)
        rows, misfits = fit(self._table(arrays, len(places)), self.reading)
        reasons |= {places[row]: reason for row, reason in misfits.items()}
        return rows, _rejected(batch, reasons)

    def _decode(self, batch: JsonBatch, places: list[int]) -> tuple[list[msgspec.Struct], dict[int, str]]:
        texts = batch.texts
        if self.reading.new_columns != "ignore":  # with "ignore", a key in another case would silently be ignored
            for decoder in (self.decoder, *list(self.renamed.values())[-1:]):
                with suppress(*_UNDECODED):
                    return [decoder.decode(texts[at]) for at in places], {}
        found, reasons = [], {}
        for at in places:
            try:
                found.append(self._decode_one(texts[at]))
            except _UNDECODED as error:
                self._refuse_new_column(str(error), batch.place(at)[0])
                reasons[at] = _reason(str(error))
        return found, reasons

    def _decode_one(self, text: bytes) -> msgspec.Struct:
        """Decode a record whose keys may differ in case from the columns."""
        if self.reading.new_columns == "ignore":
            return self._decoder(self._keys(text)).decode(text)
        try:
            return self.decoder.decode(text)
        except msgspec.ValidationError as error:
            unknown = _UNKNOWN.fullmatch(str(error))
            if unknown is None or unknown[2] or not (keys := self._keys(text)):
                raise
        return self._decoder(keys).decode(text)

    def _decoder(self, keys: dict[str, str]) -> LineDecoder:
        known = tuple(sorted(keys.items()))
        if known and known not in self.renamed:
            self.renamed[known] = line_decoder(self.reading, keys)
        return self.renamed[known] if known else self.decoder

    def _keys(self, text: bytes) -> dict[str, str]:
        """The keys of a record that differ in case from the columns that they mean, by column."""
        given = list(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
        own = [field.name for field in json_fields(self.reading)]
        meant = table_names(given, own)
        missing = {name.casefold() for name in own} - {name.casefold() for name in meant if name in own}
        if unclear := next((key for key in meant if key not in own and key.casefold() in missing), None):
            # ignoring it would fill a column with nulls though the record has it in another case
            raise msgspec.ValidationError(f"Object contains unknown field `{unclear}`")
        return {name: key for key, name in zip(given, meant, strict=True) if key != name}

    def _refuse_new_column(self, problem: str, line: int) -> None:
        unknown = _UNKNOWN.fullmatch(problem)
        if unknown is not None:
            above = tuple((unknown[2] or "").replace("[...]", ".element").split(".")) if unknown[2] else ()
            raise new_column((*above, unknown[1]), self.reading.schema.names, f"{self.source}, line {line}")

    def _arrays(self, columns: list[Values]) -> tuple[list[AnyArray], dict[int, str]]:
        """The columns, and, by position, why the values of a row do not convert."""
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
    """What msgspec says about a line, with the column first."""
    found = _MISTYPED.fullmatch(problem)
    if found is None:
        return problem
    wanted = found[1].removesuffix(" | null")
    place = f"column {found[3]}: " if found[3] else ""
    return f"{place}expected {wanted}, found {found[2]}"


def _column(values: Values, field: Field) -> AnyArray:
    """The values of a column, with its default where the key is missing."""
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


def _rejected(batch: JsonBatch, reasons: dict[int, str]) -> tuple[Rejected, ...]:
    found = list(batch.rejected)
    for at in sorted(reasons):
        line, offset = batch.place(at)
        raw = batch.texts[at].removesuffix(b"\r")[:RAW_BYTES]
        found.append(Rejected(line=line, offset=offset, reason=reasons[at], raw=raw))
    return tuple(sorted(found, key=attrgetter("line", "offset")) if batch.rejected else found)
