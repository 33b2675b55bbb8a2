"""Two checkpoints held against each other: which tensors belong together, what is different, and the numbers of it."""
