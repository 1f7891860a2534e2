"""Work for tasks on executors, and work small enough for the driver itself."""
