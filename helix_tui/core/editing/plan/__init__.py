"""From an operation to a plan: the ddx commands that it takes."""
