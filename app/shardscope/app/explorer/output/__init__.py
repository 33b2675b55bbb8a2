"""What every screen shares that makes an output: choices, the target, admission, the run and its end."""
