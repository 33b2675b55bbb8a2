"""Reports that can be handed to a stranger: an allow-list, a scrub of what remains, and a check of what was made."""
