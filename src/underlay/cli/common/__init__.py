"""Shared by commands: options, output, Ctrl-C, and the choice of lake and table."""
