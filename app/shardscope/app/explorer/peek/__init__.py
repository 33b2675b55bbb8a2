"""The screen on which the numbers of one tensor are looked at."""
