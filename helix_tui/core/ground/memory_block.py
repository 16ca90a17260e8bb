"""The block of memories in a bead's description: found, taken out, told apart.

Whoever shows a bead needs this, and need not load the memory for it: 24 MB with its libraries.
"""

from __future__ import annotations

import re

BEGIN, END = "<helix-memory>", "</helix-memory>"
"""Around the block."""

_BLOCK = re.compile(rf"\n*{re.escape(BEGIN)}\n?(.*?)\n?{re.escape(END)}\n*", re.DOTALL)


def split_block(description: str) -> tuple[str, str]:
    """A description without its blocks, and what the blocks hold."""
    if BEGIN not in description:
        return description, ""
    held = "\n\n".join(part for part in _BLOCK.findall(description) if part.strip())
    return _BLOCK.sub("\n\n", description).strip("\n"), held
