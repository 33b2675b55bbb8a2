"""What DeepSpeed writes about shards (affine maps, categories, patterns, layers of experts), read and written as plain data."""
