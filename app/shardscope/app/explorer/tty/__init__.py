"""The terminal underneath: what it is told, which theme suits it, how it ends."""
