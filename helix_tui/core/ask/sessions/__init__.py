"""One question from beginning to end, and what is kept of it."""
