"""The Scan screen: every number of the checkpoint in hand read once, on request, and what stands out in them."""
