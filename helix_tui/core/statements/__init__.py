"""What is said of a project: each sentence in one place, rendered by every screen, command and notification."""
