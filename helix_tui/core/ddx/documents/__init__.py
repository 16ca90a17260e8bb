"""DDx's document graph: what documents depend on, which are stale, and which beads they govern.

``frontmatter`` reads the block at the head of a document, ``hashing`` its content hash, ``graph`` builds the graph by
ddx's rule, ``source`` answers from ddx if it is installed, else from the built-in reader.
"""
