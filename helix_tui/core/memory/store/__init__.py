"""The database of memories: tables, rows, revisions, corrections, upkeep."""
