"""Whether a map holds together, and whether two maps say the same."""
