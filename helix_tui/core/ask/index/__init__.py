"""The index of a repository, and the search channels."""
