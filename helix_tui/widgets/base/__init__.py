"""What lists are built from: lines, rows, the viewport, the painted list."""
