"""CSV, read block by block, and record by record where a block does not fit."""
