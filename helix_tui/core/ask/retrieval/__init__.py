"""The retrieval loop: parse the question, find what lacks evidence, choose the next search, decide when to stop."""
