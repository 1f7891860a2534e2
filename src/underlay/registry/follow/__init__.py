"""Follows the store in the background: answers within a deadline, applies new commits, shares pieces."""
