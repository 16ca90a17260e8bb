"""What attempts have taught, and what a person makes of it."""
