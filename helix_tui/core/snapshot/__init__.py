"""From changed files to one immutable snapshot, and what changed in it."""
