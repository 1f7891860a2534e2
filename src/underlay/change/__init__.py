"""Operations that change a table: append, overwrite, register, define."""
