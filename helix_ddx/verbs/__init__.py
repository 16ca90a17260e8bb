"""The verbs of ``bead``: one file a verb or two."""
