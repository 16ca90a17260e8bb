"""helix-ddx: the simulation, the demo and the embedded tracker. Nothing else may import it."""

import helix_tui  # noqa: F401 - first: it loads msgspec in the short way
