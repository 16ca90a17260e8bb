"""HELIX over DDx: what should happen next, and why. Knows ddx, beads, memory and the journal."""
