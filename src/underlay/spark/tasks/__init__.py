"""What tasks on executors do, and what is small enough for the driver to do itself."""
