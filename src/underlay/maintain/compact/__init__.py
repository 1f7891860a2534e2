"""Compacts tables: copies whole blocks byte for byte, encodes the others again, and folds deletion bits."""
