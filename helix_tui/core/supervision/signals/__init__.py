"""What a person should know: drift, orphans, stuck beads, questions, needs."""
