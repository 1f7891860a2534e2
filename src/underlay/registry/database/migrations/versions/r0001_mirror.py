"""What mirrors the catalog and the roots: tables, revisions, versions, segments, files and sources."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    _lake()
    _physical_tables()
    _tags()
    _revisions()
    _versions()
    _segments()
    _file_metadata()
    _sources()


def _lake() -> None:
    op.create_table(
        "lake",
        sa.Column("one", sa.Integer(), nullable=False),
        sa.Column("lake_id", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.Text(), nullable=False),
        sa.Column("committed_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("one", name="pk_lake"),
        sa.CheckConstraint("one = 1", name="ck_lake_one_row"),
        comment="The lake that the registry belongs to, and the newest entry of its catalog that was applied.",
    )


def _physical_tables() -> None:
    op.create_table(
        "physical_tables",
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("active", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("folder", name="pk_physical_tables"),
        comment="Tables that are there: where, called what, and which revision is active.",
    )
    op.create_index("ix_physical_tables_name", "physical_tables", ["name"], unique=True)


def _tags() -> None:
    op.create_table(
        "tags",
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("folder", "tag", name="pk_tags"),
    )


def _revisions() -> None:
    op.create_table(
        "revisions",
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False, comment="active, closed or dropped"),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("head", sa.BigInteger(), nullable=False),
        sa.Column("head_id", sa.Text(), comment="commit id of the head"),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("file_count", sa.BigInteger(), nullable=False),
        sa.Column("data_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("revision", name="pk_revisions"),
        comment="Revisions that the catalog names, and the newest version of each that was applied.",
    )
    op.create_index("ix_revisions_folder", "revisions", ["folder"])


def _versions() -> None:
    op.create_table(
        "versions",
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Text()),
        sa.Column("committed_us", sa.BigInteger(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("writer", sa.Text(), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False, comment="JSON: what the operation did"),
        sa.Column("restored", sa.BigInteger(), comment="the version that a rollback brought back"),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("file_count", sa.BigInteger(), nullable=False),
        sa.Column("data_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("revision", "version", name="pk_versions"),
    )
    op.create_index("ix_versions_commit_id", "versions", ["commit_id"], unique=True)
    op.create_index("ix_versions_revision_committed_us", "versions", ["revision", "committed_us"])


def _segments() -> None:
    op.create_table(
        "segments",
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("segment", sa.Text(), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.Column("removed", sa.BigInteger()),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("crc", sa.BigInteger(), nullable=False),
        sa.Column("file_count", sa.BigInteger(), nullable=False),
        sa.Column("block_count", sa.BigInteger(), nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("data_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("revision", "segment", "added", name="pk_segments"),
    )
    op.create_index(
        "ix_segments_live",
        "segments",
        ["revision", "segment"],
        postgresql_where=sa.text("removed IS NULL"),
        sqlite_where=sa.text("removed IS NULL"),
    )


def _file_metadata() -> None:
    op.create_table(
        "file_metadata",
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.Column("removed", sa.BigInteger()),
        sa.Column("etag", sa.Text()),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("block_count", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("revision", "location", "added", name="pk_file_metadata"),
    )
    op.create_index(
        "ix_file_metadata_live",
        "file_metadata",
        ["revision", "location"],
        postgresql_where=sa.text("removed IS NULL"),
        sqlite_where=sa.text("removed IS NULL"),
    )


def _sources() -> None:
    op.create_table(
        "sources",
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("revision", "uri", name="pk_sources"),
        comment="What the head of a revision knows to be ingested or claimed, and the tokens of appends.",
    )
    op.create_index("ix_sources_revision_status", "sources", ["revision", "status"])
