"""Commands that write and read rows: `append`, `register`, `scan`, `sql` and `plan`."""
