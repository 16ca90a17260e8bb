"""Tables of costs and outcomes."""
