"""Commands that change rows and tables: `upsert`, `delete`, `update` and `alter`; and `changes`, which reads them."""
