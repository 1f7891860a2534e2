"""Turns a Parquet footer into index entries: checks that the file fits, and which statistics can be trusted."""
