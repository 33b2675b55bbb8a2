"""Looking at the numbers of one tensor: which of them, some of them in a grid, and what all of them come to."""
