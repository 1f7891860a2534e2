"""What was read once and is kept: in memory by bytes, and on disk for remote stores."""
