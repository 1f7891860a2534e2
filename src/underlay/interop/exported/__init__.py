"""What an export is asked for, where files are for other engines, and what came of it."""
