"""The index of a repository, and the ways of finding in it."""
