"""Numbers of a checkpoint, from its path: of one tensor, or of all for what stands out; and where each rank has them."""
