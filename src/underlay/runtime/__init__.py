"""Services of the process: threads, forks, and a name unique to this process."""
