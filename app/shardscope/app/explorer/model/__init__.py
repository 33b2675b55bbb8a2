"""The Model screen: what the checkpoint in hand is made of, and what its weights and cache come to."""
