"""HELIX's commands: one file a command, or a few commands that one table drives."""
