"""The files of a question: listed by git, filtered by path and content."""
