"""A version's FileIndex: which files Spark reads, how, and on which hosts; and the guards before it."""
