"""Documents of shard maps, and the arrays on disk that they are applied to."""
