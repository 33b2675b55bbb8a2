"""Output files as tasks that any process can carry out, and what their attempts leave."""
