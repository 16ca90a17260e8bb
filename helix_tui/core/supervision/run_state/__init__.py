"""What a run records and how it is controlled from outside: state, lock, status, budget, stop requests."""
