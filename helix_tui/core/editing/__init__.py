"""Changes to the queue: planned, foreseen, run through ddx, taken back."""
