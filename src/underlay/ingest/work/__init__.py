"""Units of work: what a worker is given, how it reads its sources, and what it returns."""
