"""Reports the progress of an ingest."""

from __future__ import annotations

from typing import Protocol

from underlay.ingest.exactly_once.ledger import Ledger


class IngestProgress(Protocol):
    """Receives an ingest's steps; `advanced` is called from several threads."""

    def found(self, ledger: Ledger) -> None:
        """The sources that were found, by what the table knows about them; `begun` says which are read."""

    def begun(self, sources: int, size_bytes: int) -> None:
        """A run starts to read this many sources and bytes. Called again when more become free."""

    def advanced(self, *, sources: int = 0, rows: int = 0, rejected: int = 0, read_bytes: int = 0) -> None:
        """The bytes read since the last call. Negative when something must be read again."""

    def waiting(self, count: int, owner: str) -> None:
        """The ingest waits for sources that other runs have claimed; `owner` is one of these runs. Called
        repeatedly.
        """

    def committed(self, version: int) -> None:
        """A version of the table contains what was read so far."""


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
