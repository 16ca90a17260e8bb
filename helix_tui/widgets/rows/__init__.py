"""Rows: lists on the line API, and the drawing of one row of each kind."""
