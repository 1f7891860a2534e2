"""The progress of an ingest, as it is reported."""

from __future__ import annotations

from typing import Protocol

from underlay.ingest.exactly_once.ledger import Ledger


class IngestProgress(Protocol):
    """Is told of an ingest's steps, `advanced` from several threads."""

    def found(self, ledger: Ledger) -> None:
        """The sources that were found, by what the table knows of them; `begun` says which are read."""

    def begun(self, sources: int, size_bytes: int) -> None:
        """A run starts to read this many sources with this many bytes. Called again when more become free."""

    def advanced(self, *, sources: int = 0, rows: int = 0, rejected: int = 0, read_bytes: int = 0) -> None:
        """What was read since the last call. Negative when something has to be read again."""

    def waiting(self, count: int, owner: str) -> None:
        """The ingest waits for sources that other runs have claimed: `owner` is one of them. Called repeatedly."""

    def committed(self, version: int) -> None:
        """A version of the table has what was read so far."""


class NoProgress:
    """Reports nothing."""

    def found(self, ledger: Ledger) -> None:
        """Nothing."""

    def begun(self, sources: int, size_bytes: int) -> None:
        """Nothing."""

    def advanced(self, *, sources: int = 0, rows: int = 0, rejected: int = 0, read_bytes: int = 0) -> None:
        """Nothing."""

    def waiting(self, count: int, owner: str) -> None:
        """Nothing."""

    def committed(self, version: int) -> None:
        """Nothing."""
