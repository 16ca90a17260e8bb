"""Running a plan: who may write, what ran, what came of it."""
