"""`underlay registry`: status, follow, restore and migrate."""
