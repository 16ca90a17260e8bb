"""Records as sources: what they hold, how they are found, and that nothing is read twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helix_tui.core.ask.corpus.git import Git
from helix_tui.core.ask.records import Span, item_id
from helix_tui.core.ask.sessions.session import kept_evidence
from helix_tui.core.evidence.session import AskSession, item_of
from helix_tui.core.evidence.sources import ProjectRecords, WorkReader
from helix_tui.core.ground.project import Project
from tests.core.evidence.work import ATTEMPT, BEADS, LATER, bead, make_work, write_beads


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_work(tmp_path_factory.mktemp("work") / "ferry")


@pytest.fixture
def records(project: Project) -> ProjectRecords:
    found = ProjectRecords(project, WorkReader(project), in_memory=True)
    found.refresh()
    return found


def _files(spans: list[Span]) -> list[str]:
    return list(dict.fromkeys(span.file for span in spans))


def test_beads_memories_and_runs_are_found_by_their_words(records: ProjectRecords) -> None:
    assert _files(records.search("quoted commas"))[0] == "bead:fy-1a2b"
    assert _files(records.search("killed worker lock"))[0].startswith("memory:")
    assert _files(records.search("budget of tokens", kinds=("run",))) == ["run:helix-20260801.log"]
    assert all(span.role == "record" for span in records.search("parser"))


def test_a_bead_is_told_with_its_attempts_and_reviews_newest_first(records: ProjectRecords) -> None:
    headers = [span.header.rpartition(" > ")[2] for span in records.named("fy-1a2b")]
    assert headers.index(f"Attempt {LATER}") < headers.index(f"Attempt {ATTEMPT}")
    assert "Review on 2026-08-02" in headers
    whole = "\n".join(span.text for span in records.named("1a2b"))
    assert "merge conflict" in whole
    assert "no test" in whole
    assert records.named("no-such-9") == []


def test_an_attempt_leads_to_its_bead(records: ProjectRecords) -> None:
    assert _files(records.named(LATER)) == ["bead:fy-1a2b"]


def test_only_sections_of_attempts_or_reviews_where_these_are_asked_for(records: ProjectRecords) -> None:
    found = records.search("comma test", kinds=("review",))
    assert [span.header.rpartition(" > ")[2] for span in found] == ["Review on 2026-08-02"]


def test_a_renewed_claim_is_no_other_text(tmp_path: Path) -> None:
    project = make_work(tmp_path / "ferry")
    records = ProjectRecords(project, WorkReader(project))
    records.refresh()
    before = records.digests
    write_beads(project.root, (*BEADS[:2], {**BEADS[2], "work-heartbeat-at": "2026-08-03T00:00:00Z"}))
    records.refresh()
    assert records.digests == before
    write_beads(project.root, (*BEADS, bead("fy-7a8b", "Print the tide")))
    records.refresh()
    assert _files(records.search("tide")) == ["bead:fy-7a8b"]
    assert (project.helix_dir / "ask").is_dir()
    records.close()


def test_a_memory_that_gives_orders_is_no_source(project: Project) -> None:
    work = WorkReader(project)()
    assert [memory.name for memory in work.memories]
    assert not any(record.kind == "memory" for record in type(work)(beads=work.beads).records())


def test_names_that_hurt_stay_names(tmp_path: Path) -> None:
    project = make_work(tmp_path / "ferry")
    odd = bead("../../etc", "a\x1b[31m red # title\n## Attempt x", description="## Attempt 1\nodd words here")
    write_beads(project.root, (*BEADS, odd))
    records = ProjectRecords(project, WorkReader(project), in_memory=True)
    records.refresh()
    (found,) = {span.file for span in records.search("odd words")}
    assert found == "bead:../../etc"
    spans = records.named("../../etc")
    assert "\x1b" not in "".join(span.text + span.header for span in spans)
    assert not any(span.header.rpartition(" > ")[2] == "Attempt 1" and span.header.count(" > ") == 1 for span in spans)


def test_attempts_are_found_by_their_end_in_the_archive_too(tmp_path: Path) -> None:
    project = make_work(tmp_path / "ferry")
    first, *others = BEADS
    write_beads(project.root, tuple(others))
    (project.root / ".ddx" / "beads-archive.jsonl").write_text(json.dumps({**first, "status": "closed"}) + "\n")
    found = ProjectRecords(project, WorkReader(project), in_memory=True)
    found.refresh()
    assert [span.header.rpartition(" > ")[2] for span in found.ended(("refused",))] == [f"Attempt {LATER}"]
    assert [span.header.rpartition(" > ")[2] for span in found.ended(("failed", "refused"))] == [
        f"Attempt {LATER}",
        f"Attempt {ATTEMPT}",
    ]
    assert found.ended(("landed",)) == []
    assert found.in_state("attempt", "failed")[0] == 0  # as `attempts` counts: it does not read the archive


def test_what_is_found_opens_at_its_lines_with_its_hash(project: Project, records: ProjectRecords) -> None:
    session = AskSession(project, ddx=None, keep=False)
    session.start()
    try:
        found = session.search("quoted comma parser budget of tokens lease limit killed worker", 20)["records"]
        told = [item_of(span) for span in records.named("fy-1a2b")]
        assert {"bead", "run", "memory"} <= {item["kind"] for item in found}
        for item in (*found, *told):
            opened = session.open_item(item["id"], item["hash"])
            assert opened["unchanged"], item["id"]
            assert opened["text"] == item["text"]
    finally:
        session.stop()


def test_lines_of_a_commit_are_opened_by_their_numbers(project: Project) -> None:
    head = Git(project.root).commit_of("HEAD")
    session = AskSession(project, ddx=None, keep=False)
    session.start()
    try:
        whole = session.open_item(f"commit:{head}")
        part = session.open_item(f"commit:{head}:3-3")
    finally:
        session.stop()
    assert part["text"] == whole["text"].split("\n")[2] == "A slow disk let claims expire while tests ran."
    assert (part["start"], part["end"]) == (3, 3)


def test_a_question_that_follows_keeps_passages_of_records_that_are_the_same(tmp_path: Path) -> None:
    project = make_work(tmp_path / "ferry")
    session = AskSession(project, ddx=None, keep=False)
    session.start()
    try:
        records = session.search("quoted comma parser budget of tokens killed worker", 20)["records"]
        evidence = [{**item, "file": item["id"].rpartition(":")[0], "start": 1, "end": 2} for item in records]
        assert len(evidence) >= 4
        earlier = {"question": "What does the parser do?", "evidence": evidence}
        library = session._library()
        assert [span.hash for span, _, _ in kept_evidence(library, earlier)] == [one["hash"] for one in evidence[:8]]
        # lines above it that are new move a passage, and what has changed is found anew
        write_beads(project.root, ({**BEADS[0], "description": "Other words.\n\nMany."}, *BEADS[1:]))
        kept = {span.hash: span for span, _, _ in kept_evidence(session._library(), earlier)}
        gone = [one for one in evidence[:8] if one["hash"] not in kept]
        assert gone, "the description is another"
        assert {one["file"] for one in gone} == {"bead:fy-1a2b"}
        for span in kept.values():
            assert session.open_item(item_id(span), span.hash)["unchanged"]
    finally:
        session.stop()
