"""Bytes of immutable objects, for machines that have not read them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables."""
    _footer_cache()


def _footer_cache() -> None:
    op.create_table(
        "footer_cache",
        sa.Column("object_key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False, comment="which content of the object: a checksum, an etag"),
        sa.Column("first_byte", sa.BigInteger(), nullable=False),
        sa.Column("end_byte", sa.BigInteger(), nullable=False),
        sa.Column("crc", sa.BigInteger(), nullable=False, comment="CRC-32 of the data"),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("added_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("object_key", "state", "first_byte", "end_byte", name="pk_footer_cache"),
        comment="Footers, sidecars and pieces of segments, for machines that have not read them yet. Mirrors nothing.",
    )
    op.create_index("ix_footer_cache_added_us", "footer_cache", ["added_us"])
