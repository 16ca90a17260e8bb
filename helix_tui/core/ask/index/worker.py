"""``python -m helix_tui.core.ask.index.worker``: reads batches of files for an index that is being built."""

from __future__ import annotations

from helix_tui.core.ask.index.build import serve

if __name__ == "__main__":
    serve()
