"""Commands that look after tables: `compact`, `expire`, `sweep`, `vacuum`, `health` and `care`."""
