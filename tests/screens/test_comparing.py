"""Two attempts on one bead beside each other: what the later one changed of what the earlier one made."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.comparison import compare, previous_attempt, touched
from helix_tui.screens.loop.attempt_screen import ALIKE, load_comparison
from helix_tui.widgets.text.attempt_evidence import MAX_COMPARED, ComparisonFacts, _files, _why
from helix_tui.widgets.text.diff_lines import DiffFacts, FileDiff
from tests.screens.loop_host import Attempts, open_loop, settled


def git(root: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    done = subprocess.run(
        ["git", "-C", str(root), *who, *words], check=True, capture_output=True, text=True, timeout=30
    )
    return done.stdout.strip()


@pytest.fixture
def revisions(tmp_path: Path) -> tuple[Path, str, str, str]:
    """A base, and two results from it: the second one changes another word and one more file."""
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "boat.py").write_text("first = 'ten'\nlast = 'twenty'\n")
    (tmp_path / "other.txt").write_text("untouched\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "base")
    base = git(tmp_path, "rev-parse", "HEAD")
    found = [base]
    for number, text in enumerate(("first = 'nine'\nlast = 'twenty'\n", "first = 'eight'\nlast = 'twenty'\n")):
        git(tmp_path, "checkout", "-q", "--detach", base)
        (tmp_path / "boat.py").write_text(text)
        if number:
            (tmp_path / "test_boat.py").write_text("assert True\n")
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", f"result {number}")
        found.append(git(tmp_path, "rev-parse", "HEAD"))
    git(tmp_path, "checkout", "-q", "main")
    return tmp_path, found[0], found[1], found[2]


def test_a_detail_that_repeats_the_status_does_not_stand_for_the_reason() -> None:
    bare = Attempt("20260821T100000-aaaa0001", "b", status="execution_failed", detail="execution_failed")
    assert "harness failed" in _why(bare)
    assert _why(replace(bare, detail="the tests of ferry did not end")) == "the tests of ferry did not end"


def test_the_difference_is_from_result_to_result_in_the_files_that_either_touched(
    revisions: tuple[Path, str, str, str],
) -> None:
    root, base, one, two = revisions
    earlier = Attempt("20260821T100000-aaaa0001", "b", base_rev=base, result_rev=one, status="execution_failed")
    later = Attempt("20260821T110000-aaaa0002", "b", base_rev=base, result_rev=two, status="success")
    found = compare(root, earlier, later)
    assert "-first = 'nine'" in found.between.text
    assert "+first = 'eight'" in found.between.text
    assert touched(found.between.text) == {"boat.py", "test_boat.py", "/dev/null"} - {"/dev/null"}
    assert previous_attempt(later, (later, earlier)) is earlier
    assert previous_attempt(earlier, (later, earlier)) is None


def test_beside_an_attempt_that_left_nothing_stands_all_that_the_later_one_changed(
    revisions: tuple[Path, str, str, str],
) -> None:
    root, base, _, two = revisions
    earlier = Attempt("20260821T100000-aaaa0001", "b", status="no_changes")
    later = Attempt("20260821T110000-aaaa0002", "b", base_rev=base, result_rev=two, status="success")
    between = compare(root, earlier, later).between
    assert "-first = 'ten'" in between.text
    assert "nothing is left of the earlier one" in between.warning
    assert compare(root, later, earlier).between.error


def test_two_that_left_the_same_files_say_so(revisions: tuple[Path, str, str, str]) -> None:
    root, base, one, two = revisions
    project: Any = SimpleNamespace(root=root)
    earlier = Attempt("20260821T100000-aaaa0001", "b", base_rev=base, result_rev=two, status="success")
    words = [
        "git",
        "-C",
        str(root),
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "commit-tree",
        f"{two}^{{tree}}",
    ]
    again = subprocess.run(
        [*words, "-m", "again"], check=True, capture_output=True, text=True, timeout=30
    ).stdout.strip()
    for result, said in ((again, [ALIKE]), (one, [])):
        later = Attempt("20260821T110000-aaaa0002", "b", base_rev=base, result_rev=result, status="success")
        between = load_comparison(project, earlier, later, 0).between
        assert [sentence for sentence, _ in between.before] == said
        assert bool(between.files) is not bool(said)


@pytest.mark.long
async def test_the_tab_compares_with_the_attempt_before_or_with_the_marked_one(
    revisions: tuple[Path, str, str, str],
) -> None:
    root, base, one, two = revisions
    attempts = Attempts(root)
    attempts.bead("ddx-1", "Correct the first boat")
    attempts.bead("ddx-2", "Another one")
    why = {"detail": "the check found that the second boat of the day leaves before the first one has come back"}
    failed = {"status": "execution_failed", "base_rev": base, "result_rev": one, "cost_usd": 0.4, **why}
    good = {"status": "success", "outcome": "merged", "base_rev": base, "result_rev": two, "cost_usd": 0.9}
    attempts.attempt("20260821T190000-aaaa0001", "ddx-1", result=failed)
    attempts.attempt("20260821T200000-aaaa0002", "ddx-1", result=good)
    attempts.attempt("20260821T180000-aaaa0003", "ddx-2", result=failed)
    app = open_loop(root)
    async with app.run_test(size=(160, 40)) as pilot:
        await settled(pilot)
        await pilot.press("left_square_bracket")
        await settled(pilot)
        for part in ("✗ failed", "◆ kept aside", "$0.40", "$0.90", "not touched", "test_boat.py", "changed +1 −1"):
            assert app.pane_says(part), part
        assert app.pane_says("first = 'eight'")
        values = [row.partition(" │ ")[2][10:40] for row in app.rows()]
        assert why["detail"] in " ".join(" ".join(values).split()), "why is said in full"
        await pilot.press("G", "space", "g")
        await settled(pilot)
        assert app.pane_says("20260821T180000-aaaa0003")
        await pilot.press("G", "space")
        await settled(pilot)
        assert app.pane_says("No earlier attempt on this bead")


def test_the_files_that_are_not_compared_are_counted() -> None:
    files = tuple(FileDiff(f"{number}.py") for number in range(MAX_COMPARED + 3))
    nothing: Any = SimpleNamespace()
    paras = list(_files(ComparisonFacts(nothing, (), files, DiffFacts()), 40))
    assert [para.spans[0][0] for para in paras if para.key == "files more"] == ["… 3 more files"]
