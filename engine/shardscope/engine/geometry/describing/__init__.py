"""Maps in words and in small pictures."""
