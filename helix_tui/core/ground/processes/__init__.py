"""The one door to other programs, and what they started."""
