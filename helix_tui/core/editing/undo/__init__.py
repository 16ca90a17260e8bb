"""The way back: inverse commands, and undo along the journal."""
