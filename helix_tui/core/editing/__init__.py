"""Changes to the queue: plan, preview, run through ddx, undo."""
