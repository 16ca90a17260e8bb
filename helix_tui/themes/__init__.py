"""Colours, glyphs and stylesheets, nothing else."""

from __future__ import annotations

from helix_tui.themes.roles import INKS, PREFIX, Palette, Roles, make_theme

NIGHT = Roles(
    ground="#11151c",
    text="#d9dee7",
    muted="#9aa4b5",
    success="#82cf8a",
    running="#62c4ff",
    waiting="#cdb974",
    attention="#ffb03b",
    error="#ff8d93",
    edge="#8f9dba",
    rule="#2c3443",
    selection="#1e2a3e",
    tint="#1c2a26",
    match="#352d10",
    added="#14251f",
    removed="#281c24",
    added_word="#1d4a2c",
    removed_word="#562630",
)

PAPER = Roles(
    ground="#faf9f5",
    text="#22262d",
    muted="#535c69",
    success="#15692f",
    running="#0a58a6",
    waiting="#6f5600",
    attention="#963800",
    error="#ae1c28",
    edge="#4d5a73",
    rule="#d3d3ca",
    selection="#e8e8e4",
    tint="#e4f0df",
    match="#fff0bf",
    added="#e6ece4",
    removed="#f4e7e5",
    added_word="#bfe3bd",
    removed_word="#f3c6c4",
)

STARK = Roles(
    ground="#000000",
    text="#ffffff",
    muted="#c8ccd4",
    success="#7dff8a",
    running="#6fd3ff",
    waiting="#ffe38a",
    attention="#ffc14d",
    error="#ff9aa0",
    edge="#c0cbe0",
    rule="#5a6270",
    selection="#0c2a50",
    tint="#0d331a",
    match="#463900",
    added="#102011",
    removed="#281819",
    added_word="#0f5226",
    removed_word="#641a22",
)

SIXTEEN = Roles(
    ground="ansi_default",
    text="ansi_default",
    muted="ansi_bright_black",
    success="ansi_green",
    running="ansi_cyan",
    waiting="ansi_yellow",
    attention="ansi_bright_yellow",
    error="ansi_bright_red",
    edge="ansi_bright_black",
    rule="ansi_bright_black",
    selection="ansi_white",
    tint="ansi_default",
    match="ansi_default",
    added="ansi_default",
    removed="ansi_default",
    added_word="ansi_default",
    removed_word="ansi_default",
    selected_text="ansi_black",
)

THEMES = (
    make_theme("helix-night", NIGHT, dark=True),
    make_theme("helix-paper", PAPER, dark=False),
    make_theme("helix-stark", STARK, dark=True),
    make_theme("helix-16", SIXTEEN, dark=True, ansi=True),
)
"""Every theme the console ships, the default one first. ``helix-16`` leaves all colours to the terminal."""

DEFAULT_THEME = THEMES[0].name

PLAIN_THEME = "helix-16"
"""For terminals with 16 colours or none."""

__all__ = ["DEFAULT_THEME", "INKS", "PLAIN_THEME", "PREFIX", "THEMES", "Palette", "Roles", "make_theme"]
