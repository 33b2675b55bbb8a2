"""The explorer in a browser on the same machine: `shardscope serve`, with the extra `serve`."""
