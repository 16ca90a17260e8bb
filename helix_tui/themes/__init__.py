"""Colours and stylesheets, nothing else."""
