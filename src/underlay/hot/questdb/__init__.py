"""QuestDB's own tables: which Parquet partitions are committed, with rows and statistics through their sidecars."""
