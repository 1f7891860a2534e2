"""The chain of versions: publishing, following and reading them."""
