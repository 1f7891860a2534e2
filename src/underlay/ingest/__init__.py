"""Every source exactly once: finding inputs, reading them, claiming them, and committing their rows with them."""
