"""NEXT_ACTION: what the facts decide, and what only a look at the documents can."""
