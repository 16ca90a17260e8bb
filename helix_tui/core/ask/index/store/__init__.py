"""The index on disk: postings in segments, in one SQLite file."""
