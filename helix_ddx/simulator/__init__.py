"""The stand-in for ddx's worker, in both eras."""
