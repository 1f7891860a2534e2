"""What the parts of the server share: settings and limits, problems, metrics."""
