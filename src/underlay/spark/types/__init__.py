"""Maps the types of tables, Arrow and Spark to each other, and converts rows."""
