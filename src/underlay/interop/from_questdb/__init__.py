"""Reads tables of QuestDB: their Parquet partitions at the committed version."""
