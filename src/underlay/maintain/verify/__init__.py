"""Checks the objects of a lake against each other, one kind of object at a time."""
