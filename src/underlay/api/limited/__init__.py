"""A lake as one caller may see it: which tables it may read, which it may change, and as of what time."""
