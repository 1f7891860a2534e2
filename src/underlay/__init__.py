"""Underlay: the metadata layer under Parquet."""

from underlay._version import __version__
from underlay.errors import UnderlayError

__all__ = ["UnderlayError", "__version__"]
