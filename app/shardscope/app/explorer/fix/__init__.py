"""The screen of a fix: what is wrong, what mends it, every change before it is made, the target, the run and its end."""
