"""Subcommands of helix-tui: one file each, found by the table in ``helix_tui.cli``."""
