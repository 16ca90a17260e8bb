"""Store, merge, correct and maintain memories."""
