"""The registry: a metadata database that follows the store, answers in one statement, and may be lost."""
