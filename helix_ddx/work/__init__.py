"""The verbs of ``work``: what the loop would take, focus, cooldown."""
