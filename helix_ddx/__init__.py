"""helix-ddx: the simulation, the player and the embedded tracker. Nothing else may import it."""
