"""Starting Spark: whether PySpark is installed, which Java and session to use, which lakes a session knows."""
