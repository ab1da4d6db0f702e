"""The commands that check and change a table, one module each: verify, clean, expire, compact."""
