"""What an import knows of a table of another system, whatever system it is, and how its files become ours."""
