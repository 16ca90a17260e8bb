"""Cost and outcome of attempts: tables by harness, model and kind, burn, failing beads, experiments.

Everything is computed from attempts (``core.ddx.attempts``) and the beads they were on; nothing is stored.
What nobody recorded is None and shown as n/a: a cost that is unknown never counts as 0.
"""
