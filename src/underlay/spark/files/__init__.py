"""The FileIndex of a version: which files Spark reads, how, on which hosts, and the guards in between."""
