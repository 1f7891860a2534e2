"""The registry restored, brought up to date, and compared with the store."""
