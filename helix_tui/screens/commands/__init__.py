"""What can be asked for by name, and the palette that lists it."""
