"""The base of all lists: lines, rows, the viewport, the painted list."""
