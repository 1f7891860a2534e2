"""The tables of the registry. All but `footer_cache` mirror the store and are rebuilt from it exactly.

A row that is true for some versions says from which on (`added`) and from which on no more (`removed`, null while it
is true), so that the state of any version is one statement.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)

NONE = -1
"""The head of a revision of which no root was applied."""

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
    Column("lake_id", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("commit_id", Text, nullable=False),
    Column("committed_us", BigInteger, nullable=False),
    CheckConstraint("one = 1", name="one_row"),
    comment="The lake that the registry belongs to, and the newest entry of its catalog that was applied.",
)

PHYSICAL_TABLES = Table(
    "physical_tables",
    METADATA,
    Column("folder", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("active", Text, nullable=False),
    Index("ix_physical_tables_name", "name", unique=True),
    comment="Tables that are there: where, called what, and which revision is active.",
)

TAGS = Table(
    "tags",
    METADATA,
    Column("folder", Text, primary_key=True),
    Column("tag", Text, primary_key=True),
    Column("revision", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
)

REVISIONS = Table(
    "revisions",
    METADATA,
    Column("revision", Text, primary_key=True),
    Column("folder", Text, nullable=False),
    Column("state", Text, nullable=False, comment="active, closed or dropped"),
    Column("created_us", BigInteger, nullable=False),
    Column("head", BigInteger, nullable=False),
    Column("head_id", Text, comment="commit id of the head"),
    Column("row_count", BigInteger, nullable=False),
    Column("file_count", BigInteger, nullable=False),
    Column("data_bytes", BigInteger, nullable=False),
    Index("ix_revisions_folder", "folder"),
    comment="Revisions that the catalog names, and the newest version of each that was applied.",
)

VERSIONS = Table(
    "versions",
    METADATA,
    Column("revision", Text, primary_key=True),
    Column("version", BigInteger, primary_key=True),
    Column("commit_id", Text, nullable=False),
    Column("parent_id", Text),
    Column("committed_us", BigInteger, nullable=False),
    Column("operation", Text, nullable=False),
    Column("writer", Text, nullable=False),
    Column("counts", Text, nullable=False, comment="JSON: what the operation did"),
    Column("restored", BigInteger, comment="the version that a rollback brought back"),
    Column("row_count", BigInteger, nullable=False),
    Column("file_count", BigInteger, nullable=False),
    Column("data_bytes", BigInteger, nullable=False),
    Index("ix_versions_commit_id", "commit_id", unique=True),
    Index("ix_versions_revision_committed_us", "revision", "committed_us"),
)

SEGMENTS = Table(
    "segments",
    METADATA,
    Column("revision", Text, primary_key=True),
    Column("segment", Text, primary_key=True),
    Column("added", BigInteger, primary_key=True),
    Column("removed", BigInteger),
    Column("size_bytes", BigInteger, nullable=False),
    Column("crc", BigInteger, nullable=False),
    Column("file_count", BigInteger, nullable=False),
    Column("block_count", BigInteger, nullable=False),
    Column("row_count", BigInteger, nullable=False),
    Column("data_bytes", BigInteger, nullable=False),
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
    Column("revision", Text, primary_key=True),
    Column("location", Text, primary_key=True),
    Column("added", BigInteger, primary_key=True),
    Column("removed", BigInteger),
    Column("etag", Text),
    Column("size_bytes", BigInteger, nullable=False),
    Column("row_count", BigInteger, nullable=False),
    Column("block_count", BigInteger, nullable=False),
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
    Column("revision", Text, primary_key=True),
    Column("uri", Text, primary_key=True),
    Column("identity", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("owner", Text),
    Column("row_count", BigInteger, nullable=False),
    Column("error", Text),
    Index("ix_sources_revision_status", "revision", "status"),
    comment="What the head of a revision knows to be ingested or claimed, and the tokens of appends.",
)

JOBS = Table(
    "jobs",
    METADATA,
    Column("revision", Text, primary_key=True),
    Column("job", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("renewed_us", BigInteger, nullable=False),
    Column("ttl_us", BigInteger, nullable=False),
    Index("ix_jobs_renewed_us", "renewed_us"),
    comment="Intent objects in the store: jobs that write.",
)

LEASES = Table(
    "leases",
    METADATA,
    Column("revision", Text, primary_key=True),
    Column("reader", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("renewed_us", BigInteger, nullable=False),
    Column("ttl_us", BigInteger, nullable=False),
    Index("ix_leases_renewed_us", "renewed_us"),
    Index("ix_leases_revision_version", "revision", "version"),
    comment="Lease objects in the store: readers of a version.",
)

GC_MANIFEST = Table(
    "gc_manifest",
    METADATA,
    Column("revision", Text, primary_key=True),
    Column("folder", Text, nullable=False),
    Column("name", Text, nullable=False, comment="what the table was called"),
    Column("dropped_us", BigInteger, nullable=False),
    Index("ix_gc_manifest_dropped_us", "dropped_us"),
    comment="Revisions of dropped tables, whose objects a sweep may take.",
)

FOOTER_CACHE = Table(
    "footer_cache",
    METADATA,
    Column("object_key", Text, primary_key=True),
    Column("state", Text, primary_key=True, comment="which content of the object: a checksum, an etag"),
    Column("first_byte", BigInteger, primary_key=True),
    Column("end_byte", BigInteger, primary_key=True),
    Column("crc", BigInteger, nullable=False, comment="CRC-32 of the data"),
    Column("data", LargeBinary, nullable=False),
    Column("added_us", BigInteger, nullable=False),
    Index("ix_footer_cache_added_us", "added_us"),
    comment="Footers, sidecars and pieces of segments, for machines that have not read them yet. Mirrors nothing.",
)

MIRRORED = tuple(table for table in METADATA.sorted_tables if table is not FOOTER_CACHE)
"""What `restore` rebuilds."""
