"""Pictures of the screen: the command writes what the CLI prints, and never over a file."""

from __future__ import annotations

from pathlib import Path

from helix_tui.screens.picture import keep_picture, steady
from tests.screens.conftest import MakeConsole


def test_texts_of_the_picture_begin_at_their_first_letter() -> None:
    drawn = '<text class="r1" x="61" y="20" textLength="48.8" clip-path="url(#l)">&#160;&#160;ab</text>'
    expected = '<text class="r1" x="85.4" y="20" textLength="24.4" clip-path="url(#l)">ab</text>'
    assert steady(drawn) == expected


def test_a_picture_is_never_written_over_another_one(tmp_path: Path) -> None:
    first, second = (keep_picture(svg, "queue", tmp_path / "new") for svg in ("<svg/>", "<svg></svg>"))
    assert (first.name, second.name) == ("queue.svg", "queue-2.svg")
    assert first.read_text() == "<svg/>"


async def test_the_screenshot_command_says_where_the_picture_is(console: MakeConsole, tmp_path: Path) -> None:
    app = console()
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        app.action_screenshot(path=str(tmp_path))
        await app.workers.wait_for_complete()
        await pilot.pause()
        drawn = (tmp_path / "helix-tui-queue.svg").read_text(encoding="utf-8")
        assert drawn == steady(drawn)
        assert "Journal" in drawn
        assert any("helix-tui-queue.svg" in note.message for note in app.told)
        blocked = tmp_path / "file"
        blocked.touch()
        app.action_screenshot(path=str(blocked))
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert any("was not saved" in note.message for note in app.told)
