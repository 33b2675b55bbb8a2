"""Two checkpoints held against each other."""
