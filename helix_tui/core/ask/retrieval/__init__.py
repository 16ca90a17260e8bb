"""The retrieval loop: what is asked, what still lacks evidence, what to search next, and when to stop."""
