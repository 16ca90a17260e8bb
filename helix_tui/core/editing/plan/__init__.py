"""Plan operations as ddx commands."""
