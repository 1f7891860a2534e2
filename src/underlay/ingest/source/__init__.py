"""Sources: finding them, reading one that must not change, its format and its compression."""
