"""System views: tables, versions, files, blocks, sources and jobs of a lake, as rows for SQL."""
