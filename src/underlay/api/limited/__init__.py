"""A lake as one caller may see it: some of its tables to read, some to change, all as of one time."""
