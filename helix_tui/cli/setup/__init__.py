"""Commands about this machine and project: doctor, demo, tmux, hooks."""
