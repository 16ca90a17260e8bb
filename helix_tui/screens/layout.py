"""The widths, in cells, at which the layout of the console changes."""

from __future__ import annotations

BREAKPOINTS = ((0, "-tiny"), (32, "-strip"), (40, "-side"), (60, "-stack"), (100, "-split"), (140, "-wide"))
"""Least width -> the class that every screen has from there on, for its stylesheet (Textual's breakpoints)."""

NARROW = ("-tiny", "-strip", "-side")
"""The classes of a pane beside an agent."""

BROAD = 260
"""From here list, detail and attempts of the queue are side by side; below, attempts are under the detail."""
