"""The kinds of change to a queue, each with its plan."""
