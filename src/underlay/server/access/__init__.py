"""Who may do what: tokens and their rights, and which requests are answered at all."""
