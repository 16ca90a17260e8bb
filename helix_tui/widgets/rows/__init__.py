"""Rows: lists by the line API, and what draws one row of each kind."""
