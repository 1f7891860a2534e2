"""The table stores that are measured, each through the calls that its users make."""
