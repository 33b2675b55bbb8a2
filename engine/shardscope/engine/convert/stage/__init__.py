"""The staging folder from its making to its promotion or its removal."""
