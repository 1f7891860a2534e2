"""What the process itself gives: threads side by side, forks, and a name that no other process has."""
