"""Exports versions as tables of Delta Lake: a log beside the revisions, for tables whose files are all their own."""
