"""What the rest is built from: flags, refusals, files, formats."""
