"""The metadata database: what the store says, where it is found with one statement. It may be lost at any moment."""
