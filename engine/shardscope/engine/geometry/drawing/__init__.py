"""Shard maps as a person goes through them: a window of a matrix in cells, exact where the window allows it."""
