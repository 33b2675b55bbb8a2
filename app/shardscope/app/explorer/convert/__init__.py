"""The guided conversion: what, where, how, the plan, admission, the run and its end."""
