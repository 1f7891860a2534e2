"""A version's FileIndex: which files Spark reads, how, and on which hosts; and its guards."""
