"""Seals partitions: they become files of the table in one commit, exactly once; and opens writers, which may seal."""
