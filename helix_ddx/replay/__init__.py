"""The player of recorded runs."""
