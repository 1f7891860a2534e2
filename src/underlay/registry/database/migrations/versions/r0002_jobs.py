"""What mirrors intents, leases and dropped tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables. The catalog's entry is to be applied again, since it says what was dropped."""
    _jobs()
    _leases()
    _gc_manifest()
    op.execute("DELETE FROM lake")


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("renewed_us", sa.BigInteger(), nullable=False),
        sa.Column("ttl_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("revision", "job", name="pk_jobs"),
        comment="Intent objects in the store: jobs that write.",
    )
    op.create_index("ix_jobs_renewed_us", "jobs", ["renewed_us"])


def _leases() -> None:
    op.create_table(
        "leases",
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("reader", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("renewed_us", sa.BigInteger(), nullable=False),
        sa.Column("ttl_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("revision", "reader", name="pk_leases"),
        comment="Lease objects in the store: readers of a version.",
    )
    op.create_index("ix_leases_renewed_us", "leases", ["renewed_us"])
    op.create_index("ix_leases_revision_version", "leases", ["revision", "version"])


def _gc_manifest() -> None:
    op.create_table(
        "gc_manifest",
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False, comment="what the table was called"),
        sa.Column("dropped_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("revision", name="pk_gc_manifest"),
        comment="Revisions of dropped tables, whose objects a sweep may take.",
    )
    op.create_index("ix_gc_manifest_dropped_us", "gc_manifest", ["dropped_us"])
