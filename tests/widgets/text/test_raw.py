"""The raw files of a bundle: folded by name, read when asked for, kept open over reloads."""

from __future__ import annotations

from pathlib import Path

from textual import on

from helix_tui.core.ddx.attempts.evidence import EvidenceFile
from helix_tui.widgets.text.transcript import RawPane, short_path, size_of
from tests.widgets.host import Host

FILES = (
    EvidenceFile("manifest.json", Path("manifest.json"), 2_000),
    EvidenceFile("embedded/agent-claude-1795252152469296517.jsonl", Path("x"), 3_400_000),
)


class Listener(Host):
    """Keeps what was asked for."""

    wanted: list[str]

    @on(RawPane.Wanted)
    def note(self, event: RawPane.Wanted) -> None:
        self.wanted.append(event.file.name)


async def test_a_file_is_asked_for_when_it_unfolds_and_stays_open_when_another_one_comes() -> None:
    pane = RawPane()
    app = Listener(pane)
    app.wanted = []
    async with app.run_test(size=(50, 20)) as pilot:
        pane.focus()
        pane.show_files(FILES[:1], other=True)
        await pilot.press("enter")
        await pilot.pause()
        assert app.wanted == ["manifest.json"]
        assert any("reading …" in line for line in app.rows())
        pane.give("manifest.json", ["{", '  "bead_id": "[/x]"', "}"])
        pane.show_files(FILES, other=False)
        await pilot.pause()
        shown = app.rows()
        assert any('"bead_id": "[/x]"' in line for line in shown)
        assert any(line.strip().startswith("▸ embedded/agent-clau") and "3.4 MB" in line for line in shown)
        pane.show_files(FILES, other=True)
        await pilot.pause()
        assert not any("bead_id" in line for line in app.rows())


def test_short_names_keep_beginning_and_end() -> None:
    assert short_path("a/b.json", 20) == "a/b.json"
    short = short_path(FILES[1].name, 24)
    assert len(short) <= 24
    assert short.startswith("embedded")
    assert short.endswith(".jsonl")


def test_sizes() -> None:
    assert [size_of(size) for size in (0, 940, 12_300, 3_400_000)] == ["0 B", "940 B", "12 kB", "3.4 MB"]
