"""What a project knows of its own work, for Ask: beads, attempts, reviews, memories, run logs and commits as sources,
and one object that asks all of it (`session.AskSession`).

Ask itself knows neither DDx nor the memory; this room renders their records as documents, which Ask reads with
the same index that reads files. Nobody in core knows this room.
"""
