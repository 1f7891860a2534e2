"""`underlay serve`, and `underlay token`: create, list and revoke."""
