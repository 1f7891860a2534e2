"""The registry: a metadata database that follows the store, answers with one statement, and may be lost."""
