"""What commands share: options, output, Ctrl-C, and which lake and table they mean."""
