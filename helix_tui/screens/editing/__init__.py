"""Changing the queue from the keyboard: what a key means, what would follow, and then the change itself."""
