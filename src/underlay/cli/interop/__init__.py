"""`underlay export`: tables for other engines."""
