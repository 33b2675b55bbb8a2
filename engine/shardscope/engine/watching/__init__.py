"""A folder that a run saves into, from its path to an event for each checkpoint that is complete."""
