"""One question from start to end, and its stored run."""
