"""The `_pm` sidecar: what is in a Parquet file, row group by row group, with lock-free versions.

Byte-compatible with QuestDB's format, generations 9.4 and 10. `docs/pm-format.md` has the field tables and where
this implementation is stricter.
"""
