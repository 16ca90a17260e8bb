"""Shared by every room: time, text, files, git, processes, errors, the log."""
