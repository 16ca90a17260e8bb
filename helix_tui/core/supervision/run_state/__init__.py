"""What a run writes down: its state, lock, results, costs and log."""
