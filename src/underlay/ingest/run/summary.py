"""What an ingest did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFailure:
    """A source that could not be read."""

    uri: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What one ingest did. Counts of sources add up to `sources`."""

    table: str
    run: str | None
    """The run's name, None when there was nothing to do and none began."""
    started_us: int
    """Microseconds since 1970."""
    seconds: float
    sources: int
    """All that were found."""
    ingested: int = 0
    """Read and committed by this run, `replaced` among them."""
    replaced: int = 0
    """Of these, how many had older rows, which went."""
    known: int = 0
    """In the table already, or put there by another run meanwhile."""
    skipped: int = 0
    """Changed since they were ingested, and left as they are by the policy."""
    failed: int = 0
    """Could not be read by this run."""
    failed_before: int = 0
    """Could not be read by an earlier run, and not tried again."""
    claimed: int = 0
    """Another run, which lives, is at work on them: `claimed_uris`."""
    row_count: int = 0
    rejected_count: int = 0
    source_bytes: int = 0
    """Of the sources that were ingested, as they are stored."""
    versions: tuple[int, ...] = ()
    """Versions of the table with their rows."""
    added_columns: tuple[str, ...] = ()
    is_created: bool = False
    """Whether the table was made by this ingest."""
    failures: tuple[SourceFailure, ...] = ()
    """The sources of `failed` and `failed_before`, with reasons."""
    claimed_uris: tuple[str, ...] = ()
