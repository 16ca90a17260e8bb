"""What every room may use: time, text, files, git, processes, errors, the log."""
