"""Text panes: detail, evidence, diff, transcript, prose."""
