"""Storing, merging, correcting and keeping memories in order."""
