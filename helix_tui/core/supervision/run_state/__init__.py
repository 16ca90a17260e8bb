"""What a run writes down and how it is steered from outside: state, lock, status, budget, requests to stop."""
