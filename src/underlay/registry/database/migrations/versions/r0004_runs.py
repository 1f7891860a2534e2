"""What mirrors the records of runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_NUMBERS = (
    *("source_count", "known_count", "skipped_count", "failed_count", "claimed_count", "replaced_count"),
    *("row_count", "rejected_count", "source_bytes"),
)


def upgrade() -> None:
    """Make the table. Records that are in the store come by `follow` and `restore`."""
    op.create_table(
        "runs",
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False, comment="done, nothing, failed, stopped or watching"),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("ended_us", sa.BigInteger(), nullable=False),
        sa.Column("duration_us", sa.BigInteger(), nullable=False),
        sa.Column("asked", sa.Text(), nullable=False, comment="patterns of sources"),
        sa.Column("workers", sa.Text(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _NUMBERS),
        sa.Column("versions", sa.Text(), nullable=False, comment="JSON: the newest that it committed"),
        sa.Column("version_count", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.PrimaryKeyConstraint("revision", "job", name="pk_runs"),
        comment="Records in the store: runs that ended, and those that watch.",
    )
    op.create_index("ix_runs_started_us", "runs", ["started_us"])
    op.create_index("ix_runs_revision_state", "runs", ["revision", "state"])
