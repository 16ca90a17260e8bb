"""Panes that are read: detail, evidence, diff, transcript, prose."""
