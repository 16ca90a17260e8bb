"""Records as sources: what they hold, how they are found, and that nothing is read twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from helix_tui.core.ask.corpus.git import Git
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.question import read_question
from helix_tui.core.ask.records import Span, item_id
from helix_tui.core.ask.sessions.session import kept_evidence
from helix_tui.core.beads.readiness import classify
from helix_tui.core.evidence.session import AskSession, item_of
from helix_tui.core.evidence.sources import RecordRows, WorkReader
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.time import parse_instant
from tests.core.evidence.work import ATTEMPT, BEADS, LATER, bead, make_work, write_beads


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_work(tmp_path_factory.mktemp("work") / "ferry")


class Records:
    """The records of a project in an index, as a session has them."""

    def __init__(self, project: Project) -> None:
        self.index = RepositoryIndex(project.root, None)
        self._rows = RecordRows(WorkReader(project))
        self.refresh()

    def refresh(self) -> None:
        self._rows.refresh(self.index)

    def search(self, text: str, most: int = 24) -> list[Span]:
        return self.index.search_records(read_question(text), most)


@pytest.fixture
def records(project: Project) -> Records:
    return Records(project)


def _files(spans: list[Span]) -> list[str]:
    return list(dict.fromkeys(span.file for span in spans))


def test_beads_memories_and_runs_are_found_by_their_words(records: Records) -> None:
    assert _files(records.search("quoted commas"))[0] == "bead:fy-1a2b"
    assert _files(records.search("killed worker lock"))[0].startswith("memory:")
    assert _files(records.search("budget of tokens"))[0] == "run:helix-20260801.log"
    assert all(span.role == "record" for span in records.search("parser"))


def test_a_bead_is_told_with_its_attempts_and_reviews_newest_first(records: Records) -> None:
    told = [span for span in records.search("what of fy-1a2b") if span.file == "bead:fy-1a2b"]
    headers = [span.header.rpartition(" > ")[2] for span in told]
    assert headers.index(f"Attempt {LATER}") < headers.index(f"Attempt {ATTEMPT}")
    assert "Review on 2026-08-02" in headers
    whole = "\n".join(span.text for span in told)
    assert "merge conflict" in whole
    assert "no test" in whole
    assert records.index.record("fy-1a2") == "bead:fy-1a2b"
    assert records.index.record("no-such-9") == ""


def test_an_attempt_is_found_by_its_id(records: Records) -> None:
    assert any(LATER in span.header for span in records.search(f"what happened to {LATER}?")[:3])


def test_a_renewed_claim_is_no_other_text(tmp_path: Path) -> None:
    project = make_work(tmp_path / "ferry")
    records = Records(project)
    before = records.index._database.version()
    write_beads(project.root, (*BEADS[:2], {**BEADS[2], "work-heartbeat-at": "2026-08-03T00:00:00Z"}))
    records.refresh()
    assert records.index._database.version() == before
    write_beads(project.root, (*BEADS, bead("fy-7a8b", "Print the tide")))
    records.refresh()
    assert _files(records.search("tide")) == ["bead:fy-7a8b"]
    write_beads(project.root, BEADS)
    records.refresh()
    assert records.search("tide") == []


def test_a_memory_that_gives_orders_is_no_source(project: Project) -> None:
    work = WorkReader(project)()
    assert [memory.name for memory in work.memories]
    assert not any(record.kind == "memory" for record in type(work)(beads=work.beads).records())


def test_names_that_hurt_stay_names(tmp_path: Path) -> None:
    project = make_work(tmp_path / "ferry")
    odd = bead("../../etc", "a\x1b[31m red # title\n## Attempt x", description="## Attempt 1\nodd words here")
    write_beads(project.root, (*BEADS, odd))
    records = Records(project)
    (found,) = {span.file for span in records.search("odd words")}
    assert found == "bead:../../etc"
    spans = records.index._sections(found, 1.0)
    assert "\x1b" not in "".join(span.text + span.header for span in spans)
    assert not any(span.header.rpartition(" > ")[2] == "Attempt 1" and span.header.count(" > ") == 1 for span in spans)


def test_what_is_found_opens_at_its_lines_with_its_hash(project: Project, records: Records) -> None:
    session = AskSession(project, ddx=None, keep=False)
    session.start()
    try:
        found = session.search("quoted comma parser budget of tokens lease limit killed worker", 20)["records"]
        told = [item_of(span) for span in records.search("fy-1a2b")]
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


def test_what_is_said_of_the_queue_today_is_a_record(project: Project) -> None:
    now = parse_instant("2026-08-03T00:00:00Z") or 0
    work = WorkReader(project, lambda tracker: (classify(tracker.beads, now=now, era="head"), {}))
    index = RepositoryIndex(project.root, None)
    RecordRows(work).refresh(index)
    found = index.search_records(read_question("which beads are ready?"), 9)
    (today,) = [span for span in found if span.header == "The queue today > ready: 2 beads"]
    assert "- fy-1a2b: Accept quoted commas in the timetable parser" in today.text
