"""What lies on a screen while something is being changed: a page of rows, and forms."""
