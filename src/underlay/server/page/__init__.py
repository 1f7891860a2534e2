"""The page: its built files, which this folder has after a build, and how they are sent."""
