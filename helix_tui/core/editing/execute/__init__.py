"""Run a plan: the write lock, the commands, the result."""
