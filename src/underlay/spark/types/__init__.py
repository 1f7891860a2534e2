"""Maps types and rows between tables, Arrow and Spark."""
