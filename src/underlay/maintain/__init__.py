"""What keeps a lake sound: verify what is there, and rebuild what is derived."""
