"""The work of tasks on executors, and what is small enough for the driver to do itself."""
