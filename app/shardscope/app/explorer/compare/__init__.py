"""The Compare screen: a second checkpoint beside the one in hand."""
