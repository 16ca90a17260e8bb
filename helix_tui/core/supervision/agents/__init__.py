"""Agents and Claude Code: hooks, briefing, reports, lessons, plans as beads and tasks."""
