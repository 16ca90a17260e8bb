"""The entry point of ``helix-tui`` and ``python -m helix_tui``."""

from __future__ import annotations

import sys

from helix_tui.cli.program import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
