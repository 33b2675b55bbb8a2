"""Where `shardscope` without a path starts: a path typed or picked, the Hugging Face cache, and what was looked at before."""
