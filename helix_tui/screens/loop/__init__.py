"""The loop from the console: what comes next and why; start, pause, stop; one chosen bead; answers."""
