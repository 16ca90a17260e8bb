"""DDx's document graph: what documents depend on, which are stale, and which bead stands under which.

``frontmatter`` reads the block at the head of a document, ``hashing`` its content hash, ``graph`` makes the
graph by ddx's rule, ``source`` answers by ddx where there is one and by our own reader where there is none.
"""
