"""Starts Spark: finds PySpark and Java, opens the session, and knows the session's lakes."""
