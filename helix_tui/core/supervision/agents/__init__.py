"""Agents and Claude Code: settings, hooks, briefing, reports, lessons."""
