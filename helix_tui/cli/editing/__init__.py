"""The commands that change the queue."""
