"""The Insights screen."""
