"""Collects what workers have made of a batch's sources so far."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa
from msgspec.structs import replace

from underlay.change.rows.staged import Staged
from underlay.ingest.exactly_once.commit_claimed import SourceOutcome
from underlay.ingest.exactly_once.rejected_table import no_rejected_rows
from underlay.ingest.work.work_unit import WorkDone, unpack_rows

_SHOWN = 3


class BatchResults:
    """Finished work units. Each source is in one of them, unless columns must be added for it first."""

    def __init__(self) -> None:
        self.done: list[WorkDone] = []
        self.first_rejected: list[str] = []
        """Where and why some rows were rejected."""
        self._unrecorded: list[WorkDone] = []

    def add(self, done: WorkDone) -> None:
        """Keep the result of a work unit. Its rejected rows are not recorded yet."""
        self.done.append(done)
        self._unrecorded.append(done)
        if not self.first_rejected:
            self.first_rejected = _describe(done)

    def fail(self, reasons: Iterable[tuple[str, str]], options: str) -> None:
        """Mark sources as failed, with the reason. `options` is the fingerprint of how they were read."""
        outcomes = tuple(SourceOutcome(uri=uri, error=why, options=options) for uri, why in reasons)
        self.done.append(WorkDone(staged=Staged(), outcomes=outcomes))

    def drop(self, uris: Collection[str] | None = None) -> list[WorkDone]:
        """Remove the work units with one of these sources, or all, and return them."""
        if uris is None:
            dropped = self.done
        else:
            dropped = [done for done in self.done if any(outcome.uri in uris for outcome in done.outcomes)]
        gone = {id(done) for done in dropped}
        self.done = [done for done in self.done if id(done) not in gone]
        self._unrecorded = [done for done in self._unrecorded if id(done) not in gone]
        return dropped

    def outcomes(self) -> list[SourceOutcome]:
        """The outcomes of the sources."""
        return [outcome for done in self.done for outcome in done.outcomes]

    def unrecorded_bytes(self) -> int:
        """The compressed size of rejected rows that are not recorded yet."""
        return sum(len(done.rejected) for done in self._unrecorded)

    def unrecorded(self) -> tuple[set[str], pa.Table]:
        """The sources that were read and whose rejected rows are not recorded yet, and these rows."""
        uris = {one.uri for done in self._unrecorded for one in done.outcomes if one.has_recorded_rejects}
        tables = [unpack_rows(done.rejected) for done in self._unrecorded]
        return uris, pa.concat_tables([no_rejected_rows(), *(table for table in tables if table is not None)])

    def recorded(self) -> None:
        """Note that all rejected rows are recorded, and drop them."""
        self._unrecorded = []
        self.done = [replace(done, rejected=b"") for done in self.done]


def _describe(done: WorkDone) -> list[str]:
    rows = unpack_rows(done.rejected)
    found = rows.slice(0, _SHOWN).to_pylist() if rows is not None else []
    described = [f"{row['source']}, line {row['line']}: {row['reason']}" for row in found]
    return described or [
        f"{one.uri}, {one.error}" for one in done.outcomes if one.error is not None and one.rejected_count
    ]
