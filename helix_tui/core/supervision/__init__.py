"""HELIX over DDx: what should happen next, and why. Uses ddx, beads, memory and the journal."""
