"""The shard map screen: one tensor as a picture of who holds what, against a target where one is named."""
