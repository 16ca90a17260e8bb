"""The shell: going, settings, themes, news from a thread, and text that means harm."""

from __future__ import annotations

import gc
import json
import sys
import weakref
from importlib import import_module
from pathlib import Path
from typing import cast

import pytest
from rich.color import Color
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

from helix_tui.core.beads.query import FIELDS
from helix_tui.core.snapshot.snapshot import Change, merge_changes
from helix_tui.garbage import DEEP_AT_LATEST, DEEP_EVERY, SETTLE_EVERY, YOUNG_BUSY, collect_all
from helix_tui.keymap import BY_ID, KEYS, bindings, checked_keymap, keys_of, names, shown
from helix_tui.screens import AHEAD, NUMERIC, SCREENS, to_import_ahead
from helix_tui.screens.help import places
from helix_tui.screens.queue.queue_screen import QueueScreen
from helix_tui.settings.file import Settings, load_settings, settings_file
from helix_tui.settings.views import OF_NEEDS
from helix_tui.themes import DEFAULT_THEME, THEMES
from tests.screens.conftest import Console, MakeConsole, console

pytestmark = pytest.mark.long

__all__ = ["console"]


def queue(app: Console) -> QueueScreen:
    return cast(QueueScreen, app.screen)


async def test_help_lists_every_key_from_the_registry(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 340)) as pilot:
        await pilot.press("question_mark")
        await pilot.pause()
        for key in KEYS:
            assert app.sees(key.help[:40]), key.id
        for name, field in FIELDS.items():
            assert app.sees(field.example), name
        for words in ("On Queue", "On Loop", "Filter language", "Mouse", "wheel"):
            assert app.sees(words), words
        lines = app.rows()
        assert lines.index(next(line for line in lines if "On Queue" in line)) < lines.index(
            next(line for line in lines if "Everywhere" in line)
        ), "the screen that one comes from stands first"
        await pilot.press("question_mark")
        assert len(app.screen_stack) == 2
        await pilot.press("escape", "escape", "escape")
        assert len(app.screen_stack) == 1
        assert app.is_running


async def test_needs_me_ranks_and_leads_there(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.press("exclamation_mark")
        await pilot.pause()
        for words in ("until it is accepted", "cycle", "missing", "unknown", "unread"):
            assert app.sees(words), words
        rows = app.screen.query_one("RowList")
        rows.select("missing_dependency:demo-0000000e")  # type: ignore[attr-defined]
        await pilot.pause()
        assert app.sees("demo-gone0001")
        await pilot.press("enter")
        await pilot.pause()
        assert queue(app).selected_bead == "demo-0000000e"


async def test_unread_lines_are_listed_with_reasons(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.press("exclamation_mark", "G", "enter")
        await pilot.pause()
        assert app.sees("2 of 23 in beads.jsonl")
        assert app.sees("cut off")
        assert app.sees("not an object but list")


async def test_tab_comes_to_the_pulse_while_lines_are_unread(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("tab", "tab", "enter")
        await pilot.pause()
        assert app.sees("2 of 23 in beads.jsonl")


async def test_a_click_on_the_pulse_lists_unread_lines(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        at = app.rows()[0].index("2 lines unread")
        await pilot.click(queue(app).pulse, offset=(at + 3, 0))
        await pilot.pause()
        assert app.sees("2 of 23 in beads.jsonl")


@pytest.mark.parametrize(
    ("typed", "lands_on"),
    [("demo-00000006", "demo-00000006"), ("diamond", "demo-0000000d"), ("0000000b", "demo-0000000b")],
)
async def test_go_to_finds_a_bead_by_id_and_by_title(console: MakeConsole, typed: str, lands_on: str) -> None:
    app = console()
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.press("colon", *typed.replace("-", "§").replace("§", "-"), "enter")
        await pilot.pause()
        assert queue(app).selected_bead == lands_on
        assert app.focused is queue(app).list


async def test_go_to_does_commands_and_says_what_is_not_there(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        await pilot.press("colon", *"keys", "enter")
        await pilot.pause()
        assert app.sees("On Queue")
        await pilot.press("escape", "colon", *"nowhere[/b]", "enter")
        await pilot.pause()
        assert app.sees("no bead or command is called")
        assert app.sees("nowhere[/b]")
        await pilot.press("colon", "escape")
        assert app.focused is queue(app).list


async def test_the_palette_offers_commands_views_and_themes(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 40)) as pilot:
        offered = {command.name for command in app.offered(app.screen)}
        assert {
            "queue",
            "needs me",
            "keys",
            "quit",
            "view tree",
            *(f"theme {theme.name}" for theme in THEMES),
        } <= offered
        await pilot.press("ctrl+p", *"view order", "enter")
        await pilot.pause()
        assert queue(app).kind == "order"


@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
async def test_every_theme_is_worn_by_every_screen(console: MakeConsole, theme: str) -> None:
    app = console(theme=theme)
    async with app.run_test(size=(100, 30)) as pilot:
        assert app.theme == theme
        for keys in (("slash", "a"), ("escape",), ("question_mark",), ("escape",), ("ctrl+p",)):
            await pilot.press(*keys)
        assert app.is_running


async def test_number_keys_switch_screens_and_leave_what_lies_on_them(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 30)) as pilot:
        for entry in SCREENS.values():
            await pilot.press("question_mark", entry.key)
            await pilot.pause()
            assert app.current_mode == entry.name
            assert len(app.screen_stack) == 1
        await pilot.press("1")
        assert isinstance(app.screen, QueueScreen)
        assert len(app.screen_stack) == 1


async def test_pane_keeps_to_narrow_postures_at_any_width(console: MakeConsole) -> None:
    app = console(pane=True)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        assert queue(app).breakpoint == "side"
        assert not queue(app).detail.size.width


async def test_ascii_leaves_no_other_character_on_screen(console: MakeConsole) -> None:
    app = console(ascii_only=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("question_mark")
        await pilot.pause()
        assert all(line.isascii() for line in app.rows()), [line for line in app.rows() if not line.isascii()]
        await pilot.press("escape")
        await pilot.pause()
        lines = [line for line in app.rows() if "日本語" not in line]
        assert all(line.isascii() for line in lines), [line for line in lines if not line.isascii()]


async def test_no_colour_still_shows_where_the_cursor_is(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app, default = console(), Color.default()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        styles = [segment.style for strip in strips for segment in strip if segment.style]
        assert all(style.color in (None, default) and style.bgcolor in (None, default) for style in styles)
        (row,) = [strip for strip in strips if strip.text.startswith("▌")]
        assert all(segment.style and segment.style.reverse for segment in list(row)[:5])


@pytest.mark.parametrize(
    ("term", "colorterm", "theme"),
    [("linux", "", "helix-16"), ("xterm-256color", "", "helix-night"), ("xterm", "truecolor", "helix-night")],
)
def test_a_terminal_of_few_colours_keeps_its_own(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch, term: str, colorterm: str, theme: str
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLORTERM", colorterm)
    assert console().theme == theme
    assert console(theme="helix-paper", name="other").theme == "helix-paper"


HOSTILE = [
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred",
    "[@click=app.quit()]press me[/]",
    "[/nope] [bold] list[int] a[b=c] [$primary]",
    "left\u202eright\u2066x\u2069 \u200bzero",
    "family 👨‍👩‍👧‍👦 flag 🇨🇭 heart ❤️ star ⚠️",
    "one\ntwo\r\tthree\x00\x07",
    "x" * 10_000,
    "",
]


@pytest.mark.parametrize("size", [(36, 20), (48, 20), (120, 60)])
async def test_hostile_text_does_no_harm_on_any_screen(console: MakeConsole, size: tuple[int, int]) -> None:
    rows = [
        json.dumps(
            {
                "id": f"demo-{place:08x}",
                "title": text,
                "status": text[:30] if place == 1 else "proposed" if place == 2 else "open",
                "issue_type": text[:40],
                "owner": text[:40],
                "parent": text[:60],
                "labels": [text[:200]],
                "description": text,
                "acceptance": text,
                "dependencies": [{"issue_id": "x", "depends_on_id": text[:80] or "gone"}] if place % 2 else [],
                "events": [{"kind": text, "summary": text, "body": text, "created_at": text}],
                text[:50] or "field": text,
            }
        )
        for place, text in enumerate(HOSTILE)
    ]
    app = console([*rows, *HOSTILE[:3]])
    async with app.run_test(size=size, notifications=True) as pilot:
        for keys in (
            *[("j",)] * len(rows),
            ("right_square_bracket",),
            ("right_square_bracket",),
            ("right_square_bracket",),
            ("y", "Y"),
            ("enter",),
            ("escape",),
            ("exclamation_mark", "j", "j", "G", "enter"),
            ("escape",),
            ("colon", "x", "x", "escape"),
            ("slash", "[", "/", "b", "]", "escape"),
        ):
            await pilot.press(*keys)
            if isinstance(app.screen, QueueScreen):
                app.screen.show_detail()
            await pilot.pause()
            assert app.is_running
            for strip in app.screen._compositor.render_strips():
                assert strip.cell_length == size[0]
                assert not any(char in strip.text for char in "\x1b\x00\x07\u202e\u2066\u200b")
                assert not any("@click" in (segment.style.meta if segment.style else {}) for segment in strip)


def test_changes_add_up() -> None:
    change = Change(beads=frozenset({"a"}), runs=True)
    two = Change(beads=frozenset({"b"}), attempts=frozenset({"t"}), everything=True)
    assert merge_changes([change, two]) == Change(
        beads=frozenset({"a", "b"}), runs=True, attempts=frozenset({"t"}), everything=True
    )
    assert not merge_changes([])


# --- keys and settings ------------------------------------------------------------------------------------


def test_a_key_means_one_thing_everywhere() -> None:
    meaning = {"move.needed": "one back along the edge", "move.part-before": "one back along the edge"}
    meaning |= {"move.dependent": "one on along the edge", "move.next-part": "one on along the edge"}
    # the row list lets N pass while no search is lit
    meaning |= {"change.new": "previous match, else new bead", "find.previous": "previous match, else new bead"}
    # what they are done to differs: a bead or a memory
    meaning |= {"memory.edit": "change.edit", "memory.supersede": "change.supersede"}
    # one place up or down, and as it was: a column or a bead
    meaning |= {"columns.earlier": "change.raise", "columns.later": "change.lower"}
    meaning |= {"columns.automatic": "change.restore"}
    # away with it; once more; and on Ask, A is the letter of the sense that one says yes to
    meaning |= {"needs.reject": "memory.remove", "needs.retry": "ask.again", "needs.accept": "ask.first"}
    owner: dict[str, str] = {}
    for key in KEYS:
        for name in names(key.keys):
            means = meaning.get(key.id, key.id)
            assert owner.setdefault(name, means) == means, f"{name} is {owner[name]} and {means}"


def test_no_key_that_terminals_swallow_is_bound() -> None:
    swallowed = {"ctrl+b", "ctrl+s", "ctrl+space", "ctrl+i", "ctrl+m", "ctrl+h", "ctrl+enter"}
    assert not swallowed & {name for key in KEYS for name in names(key.keys)}


def test_every_key_is_bound_with_its_id_and_stands_under_a_heading() -> None:
    scopes = {scope for key in KEYS for scope in key.scope.split(",")}
    bound = {binding.id for scope in scopes for binding in bindings(scope)}
    assert bound == set(BY_ID)
    shown = {key.id for _, scopes in places("") for key in keys_of(scopes)}
    assert shown == set(BY_ID)


def test_a_keymap_of_ones_own_is_checked() -> None:
    held, problems = checked_keymap({"move.down": "n", "nothing": "z", "find.next": "ctrl+n", "move.up": " "})
    assert held == {"move.down": "n", "find.next": "ctrl+n"}
    assert len(problems) == 2
    assert shown(BY_ID["move.down"], held) == "n"
    held, problems = checked_keymap({"move.down": "q"})
    assert not held
    assert "is already app.quit" in problems[0]
    # a refused row keeps its keys: nobody else has them
    held, problems = checked_keymap({"move.up": "j", "move.down": "q"})
    assert not held
    assert problems[0] == "move.up: 'j' is already move.down"
    assert checked_keymap({"move.up": "j", "move.down": "k"}) == ({"move.up": "j", "move.down": "k"}, [])


async def test_a_keymap_of_ones_own_holds(console: MakeConsole) -> None:
    app = console(settings=Settings(keymap={"move.down": "t", "app.help": "f1"}))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("t")
        assert queue(app).list.selected_index == 1
        await pilot.press("j")
        assert queue(app).list.selected_index == 1
        assert any(row.rstrip().endswith("f1 all") for row in app.rows()[-3:])


def test_settings_are_read_and_a_bad_file_costs_a_notice(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    assert load_settings(file) == Settings()
    file.write_text('theme = "helix-paper"\n[keys]\n"move.down" = "n"\n"move.up" = 3\n')
    settings = load_settings(file)
    assert settings.theme == "helix-paper"
    assert settings.keymap == {"move.down": "n"}
    assert len(settings.problems) == 1
    file.write_text("theme = \n")
    assert load_settings(file).problems
    file.write_bytes(b"\xff\xfe")
    assert load_settings(file).problems
    file.unlink()
    file.mkdir()
    assert load_settings(file).problems
    assert settings_file({"HOME": "/h"}).as_posix() == "/h/.config/helix-tui/settings.toml"


async def test_what_is_wrong_with_the_settings_is_said_and_the_defaults_hold(console: MakeConsole) -> None:
    app = console(settings=Settings(theme="none[/x]", problems=("settings.toml is not read: [oops]",)))
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await pilot.pause()
        assert app.theme == DEFAULT_THEME
        assert app.sees("unknown theme: none[/x]")
        assert app.sees("[oops]")


@pytest.mark.parametrize(
    ("text", "seconds", "problems"),
    [("600", 600, 0), ("-1", None, 1), ('"x"', None, 1), ("true", None, 1), ("nan", None, 1)],
)
def test_the_silence_that_is_a_stall_can_be_set(
    tmp_path: Path, text: str, seconds: float | None, problems: int
) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(f"stall_after = {text}\n")
    settings = load_settings(path)
    assert (settings.stall_after_s, len(settings.problems)) == (seconds, problems)


class _Ring:
    """Holds itself: only the collector lets it go."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize(("seconds", "key_every"), [(DEEP_EVERY + 1, 2), (DEEP_AT_LATEST, 1)])
async def test_old_garbage_goes_though_somebody_presses_keys(
    console: MakeConsole, seconds: int, key_every: int
) -> None:
    app = console()
    async with app.run_test():
        held = _Ring()
        gc.collect(0)
        gc.collect(1)  # among the oldest now, where a young collection does not look
        gone = weakref.ref(held)
        del held
        for second in range(seconds):
            app._keys = int(second % key_every == 0)
            app._tick()
        assert gone() is None


def test_what_was_frozen_and_went_goes_before_more_is_frozen() -> None:
    held = _Ring()
    try:
        gc.freeze()
        gone = weakref.ref(held)
        del held
        collect_all(freeze=True, limit_s=3_600)
        assert gone() is not None
        collect_all(freeze=True, limit_s=-1)
        assert gone() is None
    finally:
        gc.unfreeze()


async def test_what_was_frozen_and_went_is_let_go_in_a_quiet_second(console: MakeConsole) -> None:
    app = console()
    async with app.run_test():
        held = _Ring()
        gc.freeze()
        gone = weakref.ref(held)
        del held
        for _ in range(SETTLE_EVERY):
            app._keys = 1
            app._tick()
        assert gone() is not None  # a key was waiting all the time
        app._tick()
        assert gone() is None


async def test_old_garbage_goes_when_code_was_imported(
    console: MakeConsole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "first_shown_now.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    app = console()
    async with app.run_test():
        app._tick()
        held = _Ring()
        gc.collect(0)
        gc.collect(1)
        gone = weakref.ref(held)
        del held
        app._keys = 1
        app._tick()
        assert gone() is not None
        import_module("first_shown_now")
        app._keys = 1
        app._tick()
        assert gone() is not None  # somebody waits for the screen's first frame
        app._tick()
        assert gone() is None


async def test_what_is_frozen_is_not_looked_through_because_code_was_imported(
    console: MakeConsole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "first_shown_later.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    app = console()
    async with app.run_test():
        app._tick()
        held = _Ring()
        try:
            gc.freeze()
            gone = weakref.ref(held)
            del held
            import_module("first_shown_later")
            app._tick()
            assert gone() is not None
        finally:
            gc.unfreeze()


async def test_a_screen_shown_for_the_first_time_has_no_stylesheet_parsed_again(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = console()
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        parsed: list[Stylesheet] = []
        whole = Stylesheet.reparse

        def reparse(sheet: Stylesheet) -> None:
            parsed.append(sheet)
            whole(sheet)

        monkeypatch.setattr(Stylesheet, "reparse", reparse)
        for key in "261":
            await pilot.press(key)
            await pilot.pause()
        assert not parsed
        app.action_use_theme("helix-paper")
        await pilot.pause()
        assert len(parsed) == 1
        paper = app.screen.styles.background
        # one that was shown before follows when it is gone to, and so does one that was not
        for key in "23":
            await pilot.press(key)
            await pilot.pause()
            assert app.screen.styles.background == paper


async def test_a_screen_shown_for_the_first_time_computes_its_styles_once(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = console()
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause()
        again: list[DOMNode] = []
        compute = app.update_styles

        def update_styles(node: DOMNode, animate: bool = True) -> None:
            again.append(node)
            compute(node, animate=animate)

        monkeypatch.setattr(app, "update_styles", update_styles)
        for key in "23456":
            await pilot.press(key)
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert app.screen not in again


def test_what_brings_numpy_is_imported_ahead_for_who_goes_to_other_screens(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*AHEAD, *NUMERIC, "numpy"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert to_import_ahead(travelled=False) == AHEAD
    assert to_import_ahead(travelled=True) == (*AHEAD, *NUMERIC)
    monkeypatch.setitem(sys.modules, AHEAD[0], sys)
    monkeypatch.setitem(sys.modules, "numpy", sys)
    assert to_import_ahead(travelled=False) == (*AHEAD[1:], *NUMERIC)


async def test_much_young_garbage_goes_in_a_second_with_keys(console: MakeConsole) -> None:
    app = console()
    async with app.run_test():
        app._tick()
        held = _Ring()
        gone = weakref.ref(held)
        del held
        made: list[list[int]] = [[] for _ in range(2 * YOUNG_BUSY)]
        app._keys = 1
        app._tick()
        assert gone() is None
        assert made


async def test_one_line_says_that_files_are_not_watched(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(140, 40)) as pilot:
        app.feed._gatherer.unwatched = "files are checked once a second, not watched: none left"
        app.feed.look()
        await pilot.pause()
        assert any("checked once a second" in one.message for one in app.told)


@pytest.mark.parametrize(("limit_s", "freeze", "frozen"), [(-1, True, True), (3_600, True, False), (-1, False, False)])
def test_what_took_long_to_look_through_is_not_looked_through_again(limit_s: float, freeze: bool, frozen: bool) -> None:
    try:
        collect_all(freeze=freeze, limit_s=limit_s)
        assert (gc.get_freeze_count() > 1_000) is frozen
    finally:
        gc.unfreeze()


@pytest.mark.parametrize(
    ("options", "size", "at_home"),
    [
        ({"home": True}, (120, 30), True),
        ({}, (120, 30), False),
        ({"home": True}, (48, 30), False),
    ],
)
async def test_the_console_opens_on_what_waits_where_nothing_runs(
    console: MakeConsole, options: dict[str, bool], size: tuple[int, int], at_home: bool
) -> None:
    from helix_tui.screens.needs.needs_screen import NeedsScreen

    app = console(['{"id":"a","status":"proposed","title":"Choose the boat"}', '{"id":"b"}'], **options)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        assert isinstance(app.screen, NeedsScreen) is at_home
        assert app.sees("Choose the boat")
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, QueueScreen)


async def test_what_waits_is_the_first_that_is_drawn_and_the_queue_is_there_when_it_is_left(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    from helix_tui.screens.needs.needs_screen import NeedsScreen

    app = console(['{"id":"a","status":"proposed","title":"Choose the boat"}', '{"id":"b"}'], home=True)
    drawn: list[type[object]] = []
    monkeypatch.setattr(app, "post_display_hook", lambda: drawn.append(type(app.screen)))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        assert set(drawn) == {NeedsScreen}
        for keys, shown in ((["escape"], QueueScreen), (["!"], NeedsScreen), (["escape"], QueueScreen)):
            await pilot.press(*keys)
            await pilot.pause()
            assert type(app.screen) is shown
        assert len(app.screen_stack) == 1


async def test_a_view_of_the_queue_chosen_on_the_first_screen_opens_the_queue(console: MakeConsole) -> None:
    from helix_tui.screens.needs.needs_screen import NeedsScreen

    app = console(['{"id":"a","status":"proposed","title":"Choose the boat"}', '{"id":"b"}'], home=True)
    view = next(place for place, view in enumerate(app.view_book.views, 1) if view.view != OF_NEEDS)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        assert isinstance(app.screen, NeedsScreen)
        await pilot.press("V", str(view))
        await pilot.pause()
        assert isinstance(app.screen, QueueScreen)
        await pilot.press("!", "escape")  # the first screen has ended by itself; nothing waits for it
        await pilot.pause()
        assert isinstance(app.screen, QueueScreen)


async def test_a_screen_that_is_covered_does_not_draw_the_upper_one_again(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = console(['{"id":"a","status":"proposed","title":"Choose the boat"}', '{"id":"b"}'])
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("!")
        await pilot.pause()
        drawn: list[str] = []
        monkeypatch.setattr(app, "post_display_hook", lambda: drawn.append(type(app.screen).__name__))
        below = app.screen_stack[0]
        below.query_one("#queue").refresh(layout=True)
        await pilot.pause(0.1)
        assert drawn == []


async def test_the_console_opens_on_the_queue_where_nothing_waits(console: MakeConsole) -> None:
    app = console(['{"id":"b","title":"Row"}'], home=True)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        assert isinstance(app.screen, QueueScreen)
