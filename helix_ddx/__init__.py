"""helix-ddx: the rehearsal, the player and the embedded tracker. Nothing else may import it."""
