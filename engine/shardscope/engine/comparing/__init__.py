"""Two checkpoints held against each other, from their paths to what is different."""
