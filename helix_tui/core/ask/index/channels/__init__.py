"""Ways of finding: each gives every file a score, silent ones give zeros.

A new channel is one file here and one row in `helix_tui.core.ask.index.ranking`.
"""
