"""Diffs: what git prints, in full, as files and lines; huge and binary ones with a sentence."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.widgets.text.diff import HUGE_FILE, LONG_LINE, DiffPane, painted
from helix_tui.widgets.text.diff_lines import DiffFacts, parse_diff
from tests.widgets.host import Host

PLAIN = """\
diff --git a/work/watchdog.go b/work/watchdog.go
index 1..2 100644
--- a/work/watchdog.go
+++ b/work/watchdog.go
@@ -5,3 +5,4 @@ func run() {
 same
-old
+new
+more
 same
\\ No newline at end of file
"""


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, timeout=30)
    return done.stdout.decode("utf-8", "replace")


def test_lines_keep_their_kind_and_their_number_in_the_new_file() -> None:
    (file,) = parse_diff(PLAIN)
    assert (file.path, file.added, file.removed) == ("work/watchdog.go", 2, 1)
    assert [(line.kind, line.old, line.new, line.text) for line in file.lines[1:]] == [
        (" ", 5, 5, "same"),
        ("-", 6, 0, "old"),
        ("+", 0, 6, "new"),
        ("+", 0, 7, "more"),
        (" ", 7, 8, "same"),
        ("\\", 0, 0, "\\ No newline at end of file"),
    ]


def test_what_git_itself_prints_of_new_deleted_renamed_binary_and_merged_files(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "gone.txt").write_text("a\nb\n")
    (tmp_path / "old name.txt").write_text("".join(f"{n}\n" for n in range(30)))
    (tmp_path / "both.txt").write_text("one\ntwo\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "base")
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "old name.txt").rename(tmp_path / "new name.txt")
    (tmp_path / "naïve.txt").write_text("++ a line that begins with plus\n--- and one with minus\n")
    (tmp_path / "picture").write_bytes(b"\0\1\2" * 50)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "result")
    text = git(tmp_path, "-c", "core.quotePath=false", "diff", "-M", "HEAD~1", "HEAD")
    found = {file.path: (file.verb, file.added, file.removed) for file in parse_diff(text)}
    assert found == {
        "gone.txt": ("deleted", 0, 2),
        "new name.txt": ("renamed", 0, 0),
        "naïve.txt": ("new", 2, 0),
        "picture": ("binary", 0, 0),
    }

    git(tmp_path, "checkout", "-qb", "other", "HEAD~1")
    (tmp_path / "both.txt").write_text("one\ntheirs\n")
    git(tmp_path, "commit", "-qam", "theirs")
    git(tmp_path, "checkout", "-q", "main")
    (tmp_path / "both.txt").write_text("ours\ntwo\n")
    git(tmp_path, "commit", "-qam", "ours")
    subprocess.run(["git", "-C", str(tmp_path), "merge", "-q", "other"], check=False, capture_output=True, timeout=30)
    (tmp_path / "both.txt").write_text("ours\ntheirs\n")
    git(tmp_path, "commit", "-qam", "merged")
    (file,) = parse_diff(git(tmp_path, "show", "--format=", "--cc", "HEAD"))
    assert (file.path, file.added > 0) == ("both.txt", True)


@given(st.text(alphabet="diff-git+@ \\ab/\n0123,"))
def test_nothing_that_is_no_diff_raises(text: str) -> None:
    parse_diff(text)


async def test_a_pane_shows_every_line_folds_files_and_jumps_between_them() -> None:
    pane = DiffPane()
    other = PLAIN.replace("watchdog", "review")
    app = Host(pane)
    async with app.run_test(size=(80, 24)) as pilot:
        pane.show_diff(DiffFacts(parse_diff(PLAIN + other)))
        pane.focus()
        await pilot.pause()
        lines = app.rows()
        assert "2 files +4 −2" in lines[0]
        assert any("▾ work/watchdog.go" in line and "+2 −1" in line for line in lines)
        assert any("    6 + new" in line for line in lines)
        assert any("− old" in line for line in lines)
        pane.turn_part(1)
        assert pane.part() == "0"
        pane.turn_part(1)
        assert pane.part() == "1"
        assert pane.fold()
        await pilot.pause()
        assert any("▸ work/review.go" in line for line in app.rows())
        assert not pane.fold()
        await pilot.press("enter")
        assert any("▾ work/review.go" in line for line in app.rows())
        pane.turn_part(-1)
        assert pane.part() == "0"


async def test_a_huge_file_is_folded_and_a_line_of_a_megabyte_is_cut() -> None:
    many = "".join(f"+line {number}\n" for number in range(HUGE_FILE + 1))
    text = f"diff --git a/big b/big\n--- a/big\n+++ b/big\n@@ -0,0 +1,9 @@\n{many}"
    text += f"diff --git a/wide b/wide\n--- a/wide\n+++ b/wide\n@@ -0,0 +1 @@\n+{'x' * 1_000_000}\n"
    pane = DiffPane()
    app = Host(pane)
    async with app.run_test(size=(60, 60)) as pilot:
        pane.show_diff(DiffFacts(parse_diff(text)))
        await pilot.pause()
        shown = "\n".join(app.rows())
        assert "▸ big" in shown
        assert f"{1_000_000 - LONG_LINE:,}" in shown.replace("\n", "")
        pane.set_fold("0", on=False)
        await pilot.pause()
        assert any("+ line 3" in line for line in app.rows())


@pytest.mark.parametrize("width", [24, 48, 80, 120])
async def test_no_character_of_a_line_is_lost_at_any_width(width: int) -> None:
    long = "abcdefghij" * 30
    pane = DiffPane()
    app = Host(pane)
    async with app.run_test(size=(width, 60)) as pilot:
        pane.show_diff(DiffFacts(parse_diff(f"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+{long}\n")))
        await pilot.pause()
        letters = "".join(char for line in app.rows()[3:] for char in line if char in "abcdefghij")
        assert letters.endswith(long)


async def test_the_head_of_a_hunk_takes_one_line_at_any_width() -> None:
    pane = DiffPane()
    app = Host(pane)
    async with app.run_test(size=(30, 24)) as pilot:
        head = "@@ -5,4 +5,7 @@ Reads the timetables that small ferry lines publish"
        pane.show_diff(DiffFacts(parse_diff(f"diff --git a/f b/f\n--- a/f\n+++ b/f\n{head}\n+one\n")))
        await pilot.pause()
        at = next(place for place, row in enumerate(app.rows()) if "@@" in row)
        assert app.rows()[at].rstrip(" ▐").endswith("…")
        assert "one" in app.rows()[at + 1]


async def test_what_must_be_known_stands_above_the_files() -> None:
    pane = DiffPane()
    app = Host(pane)
    async with app.run_test(size=(80, 24)) as pilot:
        pane.show_diff(DiffFacts((), (("No diff: the commit is gone.", "muted"),)))
        await pilot.pause()
        assert "No diff: the commit is gone." in app.rows()[0]


WORDS = """\
diff --git a/core/x.py b/core/x.py
--- a/core/x.py
+++ b/core/x.py
@@ -1,4 +1,4 @@
 import os
-def total(items, tax=0.19):
-    return sum(items)  # all of them
+def total(items, tax=0.20):
+    return sum(items) + tax  # all of them
 print(total([1]))
diff --git a/notes.txt b/notes.txt
--- a/notes.txt
+++ b/notes.txt
@@ -1 +1 @@
-nothing alike here
+0123456789
"""


def test_the_words_that_differ_are_told_from_the_line_around_them() -> None:
    code, notes = painted(parse_diff(WORDS))
    changed = {line.text: [line.text[cells.start : cells.stop] for cells in line.changed] for line in code.lines}
    assert changed["def total(items, tax=0.19):"] == ["19"]
    assert changed["def total(items, tax=0.20):"] == ["20"]
    assert changed["    return sum(items) + tax  # all of them"] == [" + tax"] or "+ tax" in "".join(
        changed["    return sum(items) + tax  # all of them"]
    )
    assert changed["import os"] == []
    assert all(not line.changed for line in notes.lines), "lines that are nothing alike are not compared"


def test_code_is_in_the_colours_of_its_language_on_the_ground_of_what_happened() -> None:
    code, notes = painted(parse_diff(WORDS))
    inks = {text: ink for line in code.lines for text, ink in line.spans}
    assert inks["import"] == "running"
    assert inks["return"] == "running on:added"
    assert inks["20"] == "text bold on:added_word"
    assert inks["19"] == "text bold on:removed_word"
    assert [ink for line in notes.lines[1:] for _, ink in line.spans] == ["text on:removed", "text on:added"]
    assert all("".join(text for text, _ in line.spans) == line.text for line in (*code.lines, *notes.lines))


@given(st.text(max_size=80), st.text(max_size=80))
def test_no_character_of_a_line_is_lost_to_its_colours(old: str, new: str) -> None:
    clean = [
        text.translate({ord(mark): None for mark in "\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"}) for text in (old, new)
    ]
    (file,) = painted(parse_diff(f"diff --git a/x.py b/x.py\n@@ -1 +1 @@\n-{clean[0]}\n+{clean[1]}"))
    for line in file.lines:
        assert "".join(text for text, _ in line.spans) == line.text


async def test_enter_on_the_list_of_files_goes_to_the_file_and_where_one_is_is_told() -> None:
    pane = DiffPane()
    async with Host(pane).run_test(size=(100, 10)) as pilot:
        pane.show_diff(DiffFacts(painted(parse_diff(WORDS))))
        pane.focus()
        await pilot.pause()
        pane.select("list:1\n0")
        pane.action_open()
        assert pane.where == "2/2 notes.txt"
        assert pane.here == (1, 1)
        pane.select("0:4\n0")
        assert pane.here == (0, 2)
        pane.select("0:2\n0")
        assert pane.here == (0, 2), "a removed line: the next one of the new file"
        assert pane.where == "1/2 core/x.py"
