"""What a question brought: its answer, its evidence, its steps, and how two runs differ."""
