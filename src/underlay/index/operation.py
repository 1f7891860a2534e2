"""The operations that make versions, and what each may do to the rows of a table."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Operation(StrEnum):
    """The verb of a commit, stored in its root as this text.

    A newer Underlay may have verbs that this one lacks. A root that names one still decodes: its operation is a
    nameless member, `is_known` is False, and it claims nothing about rows. Readers that must know what happened to rows
    refuse it; all others use the root's delta.
    """

    # About the table and its revisions.
    CREATE = "create"
    ACTIVATE = "activate"
    DROP = "drop"
    JOB = "job"
    COMMENT = "comment"
    ADD_COLUMNS = "add columns"
    EVOLVE = "evolve"
    # Rows are added.
    APPEND = "append"
    REGISTER = "register"
    INGEST = "ingest"
    CLAIM = "claim"
    REJECT = "reject"
    STREAM = "stream"
    SEAL = "seal"
    # Rows are changed or deleted.
    OVERWRITE = "overwrite"
    UPSERT = "upsert"
    DELETE = "delete"
    UPDATE = "update"
    MERGE = "merge"
    TRUNCATE = "truncate"
    SYNC = "sync"
    UNREGISTER = "unregister"
    ROLLBACK = "rollback"
    # Files are rewritten, or versions and objects are deleted.
    COMPACT = "compact"
    IMPORT = "import"
    EXPIRE = "expire"
    SWEEP = "sweep"

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        # Not kept: a damaged or hostile lake could name any number of them.
        unknown = str.__new__(cls, value)
        unknown._name_ = unknown._value_ = value
        return unknown

    @property
    def is_known(self) -> bool:
        """Whether this version of Underlay has the operation."""
        return self in _KNOWN

    @property
    def adds_rows(self) -> bool:
        """Whether all rows of the files that it adds are new to the table, whatever else it does."""
        return self in _ADDING

    @property
    def changes_rows(self) -> bool:
        """Whether it may delete rows, or replace them."""
        return self in _CHANGING

    @property
    def keeps_rows(self) -> bool:
        """Whether the table has the same rows before and after, in whatever files."""
        return self.is_known and not self.adds_rows and not self.changes_rows


_KNOWN = frozenset(Operation)
_ADDING = frozenset(
    {
        Operation.APPEND,
        Operation.REGISTER,
        Operation.INGEST,
        Operation.REJECT,
        Operation.STREAM,
        Operation.SEAL,
    }
)
_CHANGING = frozenset(
    {
        Operation.INGEST,  # it replaces the rows of a source that changed
        Operation.REJECT,  # likewise
        Operation.REGISTER,  # it may replace those of a file that changed
        Operation.OVERWRITE,
        Operation.UPSERT,
        Operation.DELETE,
        Operation.UPDATE,
        Operation.MERGE,
        Operation.TRUNCATE,
        Operation.SYNC,  # its source may have changed rows, or rewritten files
        Operation.UNREGISTER,
        Operation.ROLLBACK,
    }
)
