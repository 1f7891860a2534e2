"""Keeps a lake sound: verifies what is stored and rebuilds what is derived."""
