"""Attempts merged from bundles, metrics, bead events and loop logs; evidence read when it is asked for."""
