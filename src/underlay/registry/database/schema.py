"""The tables of the registry. All but `footer_cache` mirror the store and are rebuilt from it exactly.

A row that is true for a range of versions has the first of them (`added`) and the first version after them (`removed`,
null while the row is true), so that one statement reads the state of any version.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    text,
)

from underlay.registry.database.column_types import KeyText, PlainText, WholeNumber

NONE = -1
"""The head of a revision before any of its roots is applied."""

SCHEMA_TABLE = "registry_schema"
"""The table with the revision of the schema: Alembic's version table, under a name that no other program's Alembic
uses."""

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

LAKE = Table(
    "lake",
    METADATA,
    Column("one", Integer, primary_key=True),
    Column("lake_id", PlainText, nullable=False),
    Column("url", PlainText, nullable=False),
    Column("number", WholeNumber, nullable=False),
    Column("commit_id", PlainText, nullable=False),
    Column("committed_us", WholeNumber, nullable=False),
    CheckConstraint("one = 1", name="one_row"),
    comment="The lake that the registry belongs to, and the newest entry of its catalog that was applied.",
)

PHYSICAL_TABLES = Table(
    "physical_tables",
    METADATA,
    Column("folder", KeyText, primary_key=True),
    Column("name", KeyText, nullable=False),
    Column("active", PlainText, nullable=False),
    Index("ix_physical_tables_name", "name", unique=True),
    comment="Tables that are there: where, called what, and which revision is active.",
)

TAGS = Table(
    "tags",
    METADATA,
    Column("folder", KeyText, primary_key=True),
    Column("tag", KeyText, primary_key=True),
    Column("revision", PlainText, nullable=False),
    Column("version", WholeNumber, nullable=False),
)

REVISIONS = Table(
    "revisions",
    METADATA,
    Column("revision", KeyText, primary_key=True),
    Column("folder", KeyText, nullable=False),
    Column("state", PlainText, nullable=False, comment="active, closed or dropped"),
    Column("created_us", WholeNumber, nullable=False),
    Column("head", WholeNumber, nullable=False),
    Column("head_id", PlainText, comment="commit id of the head"),
    Column("row_count", WholeNumber, nullable=False),
    Column("file_count", WholeNumber, nullable=False),
    Column("data_bytes", WholeNumber, nullable=False),
    Index("ix_revisions_folder", "folder"),
    comment="Revisions that the catalog names, and the newest version of each that was applied.",
)

VERSIONS = Table(
    "versions",
    METADATA,
    Column("revision", KeyText, primary_key=True),
    Column("version", WholeNumber, primary_key=True),
    Column("commit_id", KeyText, nullable=False),
    Column("parent_id", PlainText),
    Column("committed_us", WholeNumber, nullable=False),
    Column("operation", PlainText, nullable=False),
    Column("writer", PlainText, nullable=False),
    Column("counts", PlainText, nullable=False, comment="JSON: what the operation did"),
    Column("restored", WholeNumber, comment="the version that a rollback brought back"),
    Column("row_count", WholeNumber, nullable=False),
    Column("file_count", WholeNumber, nullable=False),
    Column("data_bytes", WholeNumber, nullable=False),
    Index("ix_versions_commit_id", "commit_id", unique=True),
    Index("ix_versions_revision_committed_us", "revision", "committed_us"),
)

SEGMENTS = Table(
    "segments",
    METADATA,
    Column("revision", KeyText, primary_key=True),
    Column("segment", KeyText, primary_key=True),
    Column("added", WholeNumber, primary_key=True),
    Column("removed", WholeNumber),
    Column("size_bytes", WholeNumber, nullable=False),
    Column("crc", WholeNumber, nullable=False),
    Column("file_count", WholeNumber, nullable=False),
    Column("block_count", WholeNumber, nullable=False),
    Column("row_count", WholeNumber, nullable=False),
    Column("data_bytes", WholeNumber, nullable=False),
    Index(
        "ix_segments_live",
        "revision",
        "segment",
        postgresql_where=text("removed IS NULL"),
        sqlite_where=text("removed IS NULL"),
    ),
)

FILE_METADATA = Table(
    "file_metadata",
    METADATA,
    Column("revision", KeyText, primary_key=True),
    Column("location", KeyText, primary_key=True),
    Column("added", WholeNumber, primary_key=True),
    Column("removed", WholeNumber),
    Column("etag", PlainText),
    Column("size_bytes", WholeNumber, nullable=False),
    Column("row_count", WholeNumber, nullable=False),
    Column("block_count", WholeNumber, nullable=False),
    Index(
        "ix_file_metadata_live",
        "revision",
        "location",
        postgresql_where=text("removed IS NULL"),
        sqlite_where=text("removed IS NULL"),
    ),
)

SOURCES = Table(
    "sources",
    METADATA,
    Column("revision", KeyText, primary_key=True),
    Column("uri", KeyText, primary_key=True),
    Column("identity", PlainText, nullable=False),
    Column("version", WholeNumber, nullable=False),
    Column("status", KeyText, nullable=False),
    Column("owner", PlainText),
    Column("row_count", WholeNumber, nullable=False),
    Column("error", PlainText),
    Index("ix_sources_revision_status", "revision", "status"),
    comment="What the head of a revision knows to be ingested or claimed, and the tokens of appends.",
)

JOBS = Table(
    "jobs",
    METADATA,
    Column("revision", KeyText, primary_key=True),
    Column("job", KeyText, primary_key=True),
    Column("owner", PlainText, nullable=False),
    Column("epoch", WholeNumber, nullable=False),
    Column("started_us", WholeNumber, nullable=False),
    Column("renewed_us", WholeNumber, nullable=False),
    Column("ttl_us", WholeNumber, nullable=False),
    Index("ix_jobs_renewed_us", "renewed_us"),
    comment="Intent objects in the store: jobs that write.",
)

LEASES = Table(
    "leases",
    METADATA,
    Column("revision", KeyText, primary_key=True),
    Column("reader", KeyText, primary_key=True),
    Column("owner", PlainText, nullable=False),
    Column("version", WholeNumber, nullable=False),
    Column("started_us", WholeNumber, nullable=False),
    Column("renewed_us", WholeNumber, nullable=False),
    Column("ttl_us", WholeNumber, nullable=False),
    Index("ix_leases_renewed_us", "renewed_us"),
    Index("ix_leases_revision_version", "revision", "version"),
    comment="Lease objects in the store: readers of a version.",
)

RUNS = Table(
    "runs",
    METADATA,
    Column("revision", KeyText, primary_key=True),
    Column("job", KeyText, primary_key=True),
    Column("owner", PlainText, nullable=False),
    Column("operation", PlainText, nullable=False),
    Column("state", KeyText, nullable=False, comment="done, nothing, failed, stopped or watching"),
    Column("started_us", WholeNumber, nullable=False),
    Column("ended_us", WholeNumber, nullable=False),
    Column("duration_us", WholeNumber, nullable=False),
    Column("asked", PlainText, nullable=False, comment="patterns of sources"),
    Column("workers", PlainText, nullable=False),
    Column("source_count", WholeNumber, nullable=False),
    Column("known_count", WholeNumber, nullable=False),
    Column("skipped_count", WholeNumber, nullable=False),
    Column("failed_count", WholeNumber, nullable=False),
    Column("claimed_count", WholeNumber, nullable=False),
    Column("replaced_count", WholeNumber, nullable=False),
    Column("row_count", WholeNumber, nullable=False),
    Column("rejected_count", WholeNumber, nullable=False),
    Column("source_bytes", WholeNumber, nullable=False),
    Column("versions", PlainText, nullable=False, comment="JSON: the newest that it committed"),
    Column("version_count", WholeNumber, nullable=False),
    Column("reason", PlainText),
    Index("ix_runs_started_us", "started_us"),
    Index("ix_runs_revision_state", "revision", "state"),
    comment="Records in the store: runs that ended, and those that watch.",
)

GC_MANIFEST = Table(
    "gc_manifest",
    METADATA,
    Column("revision", KeyText, primary_key=True),
    Column("folder", PlainText, nullable=False),
    Column("name", PlainText, nullable=False, comment="what the table was called"),
    Column("dropped_us", WholeNumber, nullable=False),
    Index("ix_gc_manifest_dropped_us", "dropped_us"),
    comment="Revisions of dropped tables, whose objects a sweep may take.",
)

FOOTER_CACHE = Table(
    "footer_cache",
    METADATA,
    Column("object_key", KeyText, primary_key=True),
    Column("state", KeyText, primary_key=True, comment="which content of the object: a checksum, an etag"),
    Column("first_byte", WholeNumber, primary_key=True),
    Column("end_byte", WholeNumber, primary_key=True),
    Column("crc", WholeNumber, nullable=False, comment="CRC-32 of the data"),
    Column("data", LargeBinary, nullable=False),
    Column("added_us", WholeNumber, nullable=False),
    Index("ix_footer_cache_added_us", "added_us"),
    comment="Footers, sidecars and pieces of segments, for machines that have not read them yet. Mirrors nothing.",
)

MIRRORED = (
    *(LAKE, PHYSICAL_TABLES, TAGS, GC_MANIFEST, REVISIONS),
    *(SEGMENTS, FILE_METADATA, SOURCES, VERSIONS, JOBS, LEASES, RUNS),
)
"""The tables that `restore` rebuilds, in the order in which transactions write: locking them in this order avoids
deadlocks."""

COMPARED = tuple(table for table in MIRRORED if table not in (JOBS, LEASES))
"""Tables whose content the store determines until the next commit. Jobs and leases come and go, and are mirrored only
if they were seen."""


def are_foreign(names: AbstractSet[str]) -> bool:
    """Whether a database with tables of these names belongs to another program. A registry that lost the record of its
    schema is recognised by having all of its tables.
    """
    return bool(names) and SCHEMA_TABLE not in names and not names >= METADATA.tables.keys()
