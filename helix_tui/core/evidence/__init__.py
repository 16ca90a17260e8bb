"""The records of a project's work as sources for Ask: beads, attempts, reviews, memories, run logs and commits, with
one object that asks them all (`session.AskSession`).

Ask itself knows neither DDx nor the memory; this room renders their records as documents, which Ask reads with
the same index that reads files. No other room of core imports this one.
"""
