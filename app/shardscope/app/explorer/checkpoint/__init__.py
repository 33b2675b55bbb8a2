"""The Explore screen: one checkpoint, its files on the left and what is known of it on the right."""
