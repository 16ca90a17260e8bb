"""The tracker's files, locks and records on disk."""
