"""helix-tui: a terminal console for people who supervise coding agents working a DDx queue."""

__version__ = "0.1.0"
