"""Telling somebody how far an ingest is."""

from __future__ import annotations

from typing import Protocol

from underlay.ingest.exactly_once.ledger import Ledger


class IngestProgress(Protocol):
    """Is told of an ingest's steps, `advanced` from several threads."""

    def found(self, ledger: Ledger) -> None:
        """The sources that are meant, by what the table knows of them; what is to be read is told by `begun`."""

    def begun(self, sources: int, size_bytes: int) -> None:
        """A run begins to read sources: so many, of so many bytes, are free and wanted. Again when more become free."""

    def advanced(self, *, sources: int = 0, rows: int = 0, rejected: int = 0, read_bytes: int = 0) -> None:
        """So much more was read. Negative when something has to be read again."""

    def waiting(self, count: int, owner: str) -> None:
        """So many sources are another run's, and it is waited for: `owner` is one such run. Told again and again."""

    def committed(self, version: int) -> None:
        """A version of the table has what was read until now."""


class NoProgress:
    """Tells nobody."""

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
