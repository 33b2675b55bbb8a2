"""Whether a plan may start: the figures of this machine and of the target, held against what the plan needs."""
