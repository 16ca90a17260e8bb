"""The evidence of an attempt in words: how it ended, how to read that, checks, review, commits."""

from __future__ import annotations

from pathlib import Path

from textual import on

from helix_tui.core.ddx.attempts.attempt import Review
from helix_tui.core.ddx.attempts.evidence import AttemptCheck, AttemptEvidence
from helix_tui.core.ddx.attempts.interpretation import Reading
from helix_tui.core.ddx.runs.running import Fact, Run
from helix_tui.widgets.text.attempt_evidence import AttemptSubject, EvidencePane, evidence_paras
from helix_tui.widgets.text.diff_lines import DiffFacts, parse_diff
from tests.widgets.host import Host
from tests.widgets.rows.test_attempts import BEADS, MINUTE, NOW, attempt
from tests.widgets.text.test_diff import PLAIN


def text_of(subject: AttemptSubject) -> str:
    return "\n".join(
        "".join(text for text, _ in (*para.spans, (" ", ""), *para.right)) for para in evidence_paras(subject)
    )


def test_a_preserved_attempt_says_what_it_is_where_it_is_kept_and_what_to_do() -> None:
    subject = AttemptSubject(
        attempt(
            1,
            "land_conflict",
            base_rev="a" * 40,
            result_rev="b" * 40,
            preserve_ref="refs/ddx/iterations/ddx-1/x",
            retry_after=NOW + 300 * MINUTE,
            review=Review("REQUEST_CHANGES", "two [/things]\nare missing"),
            bundle=Path("x"),
        ),
        beads=BEADS,
        reading=Reading("resolvable", "rebase it by hand"),
        now=NOW,
    )
    text = text_of(subject)
    for part in (
        "◆ kept aside  land_conflict",
        "known by        kept at refs/ddx/iterations/ddx-1/x",
        "Pin the provider release",
        "claude opus · 9m 00s · 220k tokens",
        "cost ≥$1.10  work $1.10 · reviews n/a  ≥: the cost of a call is unknown",
        "resolvable",
        "rebase it by hand",
        "not before      17:00:00",
        "REQUEST_CHANGES",
        "base            aaaaaaaaaaaa",
        "kept at         refs/ddx/iterations/ddx-1/x",
    ):
        assert part in text, part
    assert "reading its evidence …" in text


def test_a_physics_level_reading_asks_for_a_person() -> None:
    text = text_of(AttemptSubject(attempt(1, "no_changes"), reading=Reading("physics-level", "a person must decide")))
    assert "physics-level" in text
    assert "a person must decide" in text


def test_checks_rationale_changes_and_merges_have_their_sections() -> None:
    evidence = AttemptEvidence(
        checks=(
            AttemptCheck("build", "pass"),
            AttemptCheck("reach", "block", "deadcode reported 1 symbol"),
            AttemptCheck("ac", ""),
        ),
        rationale="It was there already.",
        problems=("checks.json: half-written",),
    )
    diff = DiffFacts(parse_diff(PLAIN), (("landed through merge 12ab Merge (ort -X ours)", "waiting"),))
    text = text_of(AttemptSubject(attempt(1), evidence=evidence, diff=diff, now=NOW))
    assert "checks 3 1 failed" in text
    assert text.index("✗ reach") < text.index("✓ build")
    assert "deadcode reported 1 symbol" in text
    assert "It was there already." in text
    assert "checks.json: half-written" in text
    assert "landed through merge 12ab" in text
    assert "work/watchdog.go +2 −1" in text


def test_a_crashed_attempt_without_a_folder_says_so() -> None:
    missing = AttemptEvidence(missing="no folder .ddx/executions/x here: it ran on another machine")
    text = text_of(AttemptSubject(attempt(1, ""), evidence=missing, now=NOW))
    assert "✗ interrupted" in text
    assert "known by        it left no result" in text
    assert "it ran on another machine" in text


def test_a_run_says_what_it_rests_on_file_by_file() -> None:
    run = Run(
        "ddx-2",
        "x",
        started_at=NOW - 4 * MINUTE,
        verdict="silent",
        why="its heartbeat is fresh, but it has done nothing for 12m",
        phase="review",
        last_tool="Bash go test",
        facts=(Fact("process", "77 on vm", "run-state", at=NOW - MINUTE), Fact("owner", "me", "lease")),
    )
    text = text_of(AttemptSubject(attempt(1, ""), run=run, beads=BEADS, now=NOW))
    assert "! running, but silent  4m 00s  review" in text
    assert "it has done nothing for 12m" in text
    assert "run-state  1m old" in text
    assert "77 on vm" in text
    assert "Bash go test" in text


def test_keys_are_unique_whatever_is_known() -> None:
    siblings = [attempt(number) for number in range(1, 40)]
    fact = Fact("bead", "b", "row")
    subject = AttemptSubject(
        attempt(1, detail="a\nb", error="c"),
        run=Run("ddx-1", facts=(fact, fact)),
        siblings=siblings,
        evidence=AttemptEvidence(
            decisions="x\ny", review="z", checks=(AttemptCheck("a", "pass", "m"), AttemptCheck("a", "fail", "m"))
        ),
        diff=DiffFacts(parse_diff(PLAIN * 3)),
        reading=Reading("resolvable", "x"),
    )
    keys = [para.key for para in evidence_paras(subject)]
    assert len(set(keys)) == len(keys)


class Listener(Host):
    """Keeps where lines led."""

    followed: list[tuple[str, str]]

    @on(EvidencePane.Followed)
    def note(self, event: EvidencePane.Followed) -> None:
        self.followed.append((event.kind, event.name))


async def test_enter_on_a_line_that_leads_somewhere_goes_there() -> None:
    pane = EvidencePane()
    app = Listener(pane)
    app.followed = []
    diff = DiffFacts(parse_diff(PLAIN))
    async with app.run_test(size=(60, 40)) as pilot:
        pane.show_subject(
            AttemptSubject(attempt(1), beads=BEADS, siblings=[attempt(1), attempt(2)], diff=diff), other=True
        )
        pane.focus()
        for line in ("bead:ddx-1", f"attempt:{attempt(2).attempt_id}", "diff:0", "figures"):
            assert pane.select(f"{line}\n0")
            await pilot.press("enter")
        await pilot.pause()
    assert app.followed == [("bead", "ddx-1"), ("attempt", attempt(2).attempt_id), ("diff", "0")]


async def test_a_newer_state_of_the_same_attempt_keeps_the_place_another_one_begins_at_its_top() -> None:
    pane = EvidencePane()
    async with Host(pane).run_test(size=(60, 10)):
        first = AttemptSubject(attempt(1, base_rev="a" * 40, result_rev="b" * 40), beads=BEADS, now=NOW)
        pane.show_subject(first, other=True)
        pane.select("commit result\n0")
        pane.show_subject(
            AttemptSubject(first.attempt, beads=BEADS, evidence=AttemptEvidence(checks=(AttemptCheck("a", "pass"),))),
            other=False,
        )
        assert pane.selected_key == "commit result\n0"
        pane.show_subject(AttemptSubject(attempt(2), beads=BEADS), other=True)
        assert pane.selected_index == 0
