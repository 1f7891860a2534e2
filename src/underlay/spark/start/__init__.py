"""Starting Spark: finding PySpark and Java, the session, and the lakes that a session knows."""
