"""Commands that write and read rows: `append`, `register`, `unregister`, `scan`, `sql` and `plan`."""
