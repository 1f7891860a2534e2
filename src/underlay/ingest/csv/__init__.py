"""CSV a block at once, and record by record where a block does not fit."""
