"""`helix-tui memory`: what was learnt, from the command line."""
