"""The records from which attempts are put together, one reader each."""
