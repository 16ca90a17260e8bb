"""The Needs me screen."""
