"""What programs of ours started, and what a process of somebody else is."""
