"""Every theme fills every role, legibly; every glyph is one cell and has an ASCII stand-in."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet
from textual.theme import Theme

from helix_tui.core.beads.states import STATES, Sign
from helix_tui.themes import (
    ASCII_SPINNER,
    INKS,
    NIGHT,
    PAPER,
    PREFIX,
    RUN_SIGNS,
    SPINNER,
    STARK,
    THEMES,
    Palette,
    Roles,
    to_ascii,
)

LEGIBLE = 4.5
"""WCAG 2.1, contrast of text, level AA."""

XTERM = {
    "ansi_default": "#000000",
    "ansi_black": "#000000",
    "ansi_white": "#e5e5e5",
    "ansi_bright_black": "#7f7f7f",
    "ansi_green": "#00cd00",
    "ansi_cyan": "#00cdcd",
    "ansi_yellow": "#cdcd00",
    "ansi_bright_yellow": "#ffff00",
    "ansi_bright_red": "#ff0000",
}
"""What xterm makes of the names that the 16-colour theme leaves to the terminal."""


def luminance(colour: ColorTriplet) -> float:
    """Relative luminance (WCAG 2.1)."""
    parts = (part / 255 for part in colour)
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: ColorTriplet, other: ColorTriplet) -> float:
    """Contrast ratio of two colours (WCAG 2.1)."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def shown(theme: Theme, role: str) -> str:
    colour = theme.variables[PREFIX + role]
    if theme.ansi and role == "text" and colour == "ansi_default":
        return "#e5e5e5"  # the terminal's own foreground, on its own background
    return XTERM.get(colour, colour)


def triplet(colour: str) -> ColorTriplet:
    return Color.parse(colour).get_truecolor()


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
@pytest.mark.parametrize("ink", INKS)
def test_every_role_is_legible_on_the_ground_and_on_the_selection(theme: Theme, ink: str) -> None:
    diff = ("added", "removed", *(("added_word", "removed_word") if ink == "text" else ()))
    grounds = ("ground",) if theme.ansi else ("ground", "tint", "match", *diff)
    for ground in grounds:
        assert contrast(triplet(shown(theme, ink)), triplet(shown(theme, ground))) >= LEGIBLE, ground
    on_selection = (theme.variables[PREFIX + "selected_text"] and "selected_text") or ink
    assert contrast(triplet(shown(theme, on_selection)), triplet(shown(theme, "selection"))) >= LEGIBLE


@pytest.mark.parametrize("theme", [theme for theme in THEMES if not theme.ansi], ids=lambda theme: theme.name)
@pytest.mark.parametrize("ink", INKS)
def test_every_role_stays_legible_in_256_colours(theme: Theme, ink: str) -> None:
    def downgraded(role: str) -> ColorTriplet:
        return Color.parse(shown(theme, role)).downgrade(ColorSystem.EIGHT_BIT).get_truecolor()

    for ground in ("ground", "selection"):
        assert contrast(downgraded(ink), downgraded(ground)) >= LEGIBLE, ground


@pytest.mark.parametrize("roles", [NIGHT, PAPER, STARK])
def test_the_words_that_differ_stand_out_on_their_line(roles: Roles) -> None:
    for line, word in ((roles.added, roles.added_word), (roles.removed, roles.removed_word)):
        assert contrast(triplet(line), triplet(word)) >= 1.15


def test_there_is_a_light_theme_and_one_that_leaves_colours_to_the_terminal() -> None:
    assert len(THEMES) >= 3
    assert any(not theme.dark for theme in THEMES)
    (sixteen,) = [theme for theme in THEMES if theme.ansi]
    colours = [value for key, value in sixteen.variables.items() if key.startswith(PREFIX) and value]
    assert all(colour.startswith("ansi_") for colour in colours)


def test_the_cursor_of_a_field_is_a_block_in_every_theme() -> None:
    for theme in THEMES:
        cursor = theme.to_color_system().generate()
        assert "reverse" not in cursor["input-cursor-text-style"]
        assert cursor["input-cursor-background"] not in ("ansi_default", theme.background)


def test_no_two_signs_of_ends_look_alike_in_the_second_column() -> None:
    assert len({to_ascii(sign) for sign in "✓✗◆○◉"}) == 5


def test_a_palette_draws_attributes_and_grounds() -> None:
    palette = Palette(THEMES[0].variables)
    style = palette.style("muted strike bold", "selection")
    assert style.strike
    assert style.bold
    assert style.bgcolor == Color.parse(THEMES[0].variables[PREFIX + "selection"])


SIGNS: dict[str, Sign] = {state: row.sign for state, row in STATES.items()} | RUN_SIGNS


@pytest.mark.parametrize("sign", SIGNS.values(), ids=SIGNS)
def test_every_sign_is_one_cell_in_both_columns(sign: Sign) -> None:
    assert cell_len(sign.glyph) == 1
    assert cell_len(sign.ascii) == 1
    assert sign.ascii.isascii()
    assert to_ascii(sign.glyph) == sign.ascii
    assert sign.word


def test_the_second_column_keeps_the_width_of_every_line() -> None:
    line = "▌▸ ○─┬─┼┤╮╯ ↳ 12 · … ▾▹ “x” ▐ ⎇ ⠋"
    assert len(to_ascii(line)) == len(line)
    assert to_ascii(line).isascii()
    assert all(to_ascii(frame).isascii() for frame in SPINNER)
    assert ASCII_SPINNER.isascii()


def test_a_project_and_its_branch_are_no_equation_in_ascii() -> None:
    assert to_ascii("head ⎇ main · 9m") == "head : main - 9m"
