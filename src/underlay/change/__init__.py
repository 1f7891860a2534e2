"""Operations that change a table: append, update, merge, delete, overwrite, register, define."""
