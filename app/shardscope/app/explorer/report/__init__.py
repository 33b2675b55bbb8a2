"""The Report screen: what goes in, every line of it before anything is written, and where to."""
