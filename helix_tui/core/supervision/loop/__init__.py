"""The supervisory loop: DDx executes, HELIX curates, counts, interprets and decides when to stop."""
