"""The glyph of every state: one cell each, and an ASCII stand-in. Colour is never the only carrier."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sign:
    """How one state looks: glyph, ASCII glyph, ink (a role and attributes), and the word for it."""

    glyph: str
    ascii: str
    ink: str
    word: str
    title_ink: str = "text"
    """What the title of such a bead is drawn in."""


SIGNS: dict[str, Sign] = {
    "running": Sign("◉", "@", "running bold", "running", "text bold"),
    "silent": Sign("!", "!", "error bold", "silent"),
    "dead": Sign("!", "!", "error bold", "dead"),
    "ready": Sign("○", "o", "success", "ready"),
    "waiting_dependencies": Sign("◌", ".", "muted", "waits"),
    "closed": Sign("✓", "x", "muted", "closed", "muted"),
    "cancelled": Sign("✗", "X", "muted", "cancelled", "muted strike"),
    "retry_cooldown": Sign("◷", "~", "waiting", "cools down"),
    "not_eligible": Sign("⊝", "-", "muted", "not eligible", "muted"),
    "superseded": Sign("⊝", "-", "muted", "superseded", "muted strike"),
    "blocked_external": Sign("⊘", "#", "error", "blocked outside"),
    "proposed": Sign("◆", "*", "attention bold", "proposed"),
    "preserved_review_blocked": Sign("◆", "*", "attention bold", "review unresolved"),
    "claimed": Sign("◉", "@", "running", "claimed"),
    "epic_container": Sign("▣", "+", "text", "epic"),
    "unknown_status": Sign("?", "?", "attention bold", "unknown status"),
}
"""By state of a bead; ``silent`` and ``dead`` are runs whose worker says nothing or is gone."""

UNKNOWN = SIGNS["unknown_status"]

_ASCII = {
    "▸": ">", "⏎": "/", "▾": "v", "▹": ">", "•": "*", "↻": "@",
    "⠼": "-", "⠴": "\\", "⠦": "|", "⠧": "/", "⠇": "-", "⠏": "\\",
    "▌": "|", "▐": "|", "◆": "*", "◉": "@", "○": "o", "◌": ".", "✓": "x", "✗": "X",
    "◷": "~", "⊝": "-", "⊘": "#", "▣": "+", "…": "~", "─": "-", "│": "|", "├": "+", "└": "`", "╰": "`",
    "╯": "'", "╭": ",", "╮": ".", "┬": "+", "┴": "+", "┼": "+", "┤": "+", "┌": ",", "┐": ".", "┘": "'",
    "↳": ">", "⎇": "=", "·": "-", "↑": "^", "↓": "v", "→": ">", "←": "<", "⋮": ":", "═": "=", "║": "|",
    "╌": "-", "┄": "-", "┆": ":", "╎": ":", "“": '"', "”": '"', "–": "-", "—": "-", "≥": ">", "−": "-",
    "■": "*", "█": "#", "▓": "=", "░": ":", "▏": "|", "●": "*", "⠋": "|", "⠙": "/", "⠹": "-", "⠸": "\\",
}  # fmt: skip

_TO_ASCII = str.maketrans(_ASCII)

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ASCII_SPINNER = "|/-\\"


def to_ascii(text: str) -> str:
    """The same line in the second column of the alphabet; letters of other scripts stay as they are."""
    return text if text.isascii() else text.translate(_TO_ASCII)
