"""Finding memories, ordering them, and putting them before an agent."""
