"""The types of tables, Arrow and Spark mapped to each other, and rows with them."""
