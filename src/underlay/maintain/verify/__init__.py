"""The objects of a lake checked against each other, one kind of object after the other."""
