"""Starting Spark: is PySpark there, which Java, which session, and which lakes a session knows."""
