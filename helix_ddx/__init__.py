"""helix-ddx: the simulation, the demo and the embedded tracker. Nothing else may import it."""
