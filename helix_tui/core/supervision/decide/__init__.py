"""Judgements from signals: NEXT_ACTION, *Needs me*, stuck beads, and when a person is notified."""
