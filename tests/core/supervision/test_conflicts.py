"""Conflicts between documents: resolvable, physics-level, gap."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from helix_tui.core.ddx.documents.source import read_documents
from helix_tui.core.ground.project import find_project
from helix_tui.core.supervision.signals.document_conflicts import (
    DocumentFinding,
    Statement,
    classify,
    contradict,
    find_conflicts,
    references,
    tier_of,
)


@pytest.mark.parametrize(
    ("one", "other", "cannot"),
    [
        ("The client must retry at most 5 times", "The client must retry at least 10 times", True),
        ("The request timeout is 30 s", "The request timeout is 60 s", True),
        ("A batch holds at most 100 rows", "A batch holds at least 50 rows", False),
        ("Passwords have at least 12 characters", "User names have at most 8 characters", False),
        ("A change needs more than 5 votes", "A change needs no more than 5 votes", True),
        ("A change needs fewer than 6 votes", "A change needs at least 6 votes", True),
        ("An export must not exceed 50 rows", "An export is at least 100 rows", True),
        ("Retries are at most 3 for reads", "Retries are at least 5 for writes", False),
    ],
)
def test_bounds_of_the_same_number_contradict(one: str, other: str, cannot: bool) -> None:
    assert contradict(one, other) is cannot
    assert contradict(other, one) is cannot


def test_every_pair_that_excludes_itself_is_looked_at() -> None:
    one = "The cache is case-sensitive and the nightly export of invoices is synchronous"
    other = "The nightly export of invoices is asynchronous; file names of users are case-insensitive"
    assert contradict(one, other)
    assert not contradict("The cache is case-sensitive", "File names of users are case-insensitive")


@pytest.mark.parametrize(
    ("one", "other", "cannot"),
    [
        ("The service must use Redis for sessions", "The service must not use Redis for sessions", True),
        ("Updates are delivered in real-time", "Processing is batch-only", True),
        ("Works offline-only", "It requires a network", True),
        ("Must log requests", "Must not log passwords", False),
        ("Use Postgres for storage", "Use SQLite for storage", False),
        ("Must be fast", "Must be small", False),
        ("The dashboard updates in real time", "The nightly invoice export runs batch-only", False),
        ("The dashboard updates in real time", "The dashboard updates batch-only", True),
        ("The viewer is read-only for guests", "Admins must write audit notes", False),
        ("The viewer is read-only", "The viewer must write audit notes", True),
        ("Sync works offline-only", "Telemetry requires a network", False),
        ("The export runs batch-only", "The export must run nightly, never in real time", False),
        ("The export runs batch-only", "The export must run in real time", True),
        ("The importer must be synchronous", "The importer must be asynchronous", True),
        ("The old importer was synchronous", "The importer must be asynchronous", False),
        ("Reads may be synchronous or asynchronous", "Reads must be asynchronous in the worker", False),
        ("Uploads are synchronous", "Thumbnails are made asynchronously", False),
        ("The service must run offline", "The service requires a network connection at all times", True),
        ("The web client must work offline", "The sync service requires a network connection", False),
        ("Keys are case-sensitive", "Keys must be case-insensitive", True),
        ("Records must be immutable", "Records must be mutable", True),
    ],
)
def test_only_demands_that_cannot_both_hold_contradict(one: str, other: str, cannot: bool) -> None:
    assert contradict(one, other) is cannot
    assert contradict(other, one) is cannot


ORDERS_AND_LENGTHS = [
    ("The importer must never write to the network", "The importer must write results to the network", True),
    ("The agent must write to the network", "The agent must never write to the network", True),
    ("Must never write to the network", "Must write to the network after every run", True),
    ("No module may open a socket", "The exporter must open a socket", True),
    ("Nothing may block the event loop", "The loader may block the event loop while it starts", True),
    ("The CLI must not prompt for a password", "The CLI must prompt interactively for a password", True),
    ("Plugins shall not modify the tracker file", "Plugins shall modify the tracker file when beads close", True),
    ("The server cannot store credentials", "The server must store credentials in the keychain", True),
    ("Workers are not allowed to push to main", "Workers must push to main after review", True),
    ("The daemon never restarts a failed worker", "The daemon must restart a failed worker", True),
    ("Uploads are deleted after 30 days", "Uploads are kept forever", True),
    ("The service deletes uploads after 30 days", "Uploads are retained indefinitely", True),
    ("Audit records must never be deleted", "Audit records are purged after two years", True),
    ("Backups are retained for 7 days", "Backups are retained for 90 days", True),
    ("Session logs must be kept for at least one year", "Session logs are removed after 30 days", True),
    ("The system must never delete audit records", "Audit records expire after 12 months", True),
    ("Access tokens expire after 15 minutes", "Access tokens expire after 24 hours", True),
    ("The worker lease lasts 90 seconds", "The worker lease lasts 10 minutes", True),
    ("The watcher polls the tracker every 5 seconds", "The watcher polls the tracker every 2 minutes", True),
    ("Drafts are stored permanently", "Drafts are discarded after a week", True),
    ("Temporary files must be erased within 1 hour", "Temporary files are kept for 3 days", True),
    ("Evidence bundles must not be deleted", "Evidence bundles are deleted after 60 days", True),
    ("The request timeout is 30 seconds", "The request timeout is 5 s", True),
    ("The sandbox must never reach the internet", "The sandbox must reach the internet to fetch packages", True),
    ("Reports shall never be sent by mail", "Reports shall be sent by mail every Monday", True),
    ("No plugin may read the settings file", "Themes must read the settings file", True),
    ("It must not touch files outside the project", "It must touch files outside the project when asked", True),
    ("The scheduler is forbidden to start two runs", "The scheduler may start two runs", True),
    ("Clients cannot change the priority of a bead", "Clients can change the priority of a bead", True),
    ("Telemetry must not leave the machine", "Telemetry must leave the machine once a day", True),
    ("The hook will never block a commit", "The hook will block a commit that has no bead", False),
    ("Users have to confirm every deletion", "Users must never confirm every deletion", True),
    ("Transcripts are kept for 14 days", "Transcripts are kept for six months", True),
    ("Crash dumps are removed after one week", "Crash dumps are never removed", True),
    ("The store keeps revisions forever", "The store prunes revisions after 90 days", True),
    ("Customer invoices must be retained for at least 10 years", "Customer invoices are erased after 5 years", True),
    ("Snapshots expire after 48 hours", "Snapshots never expire", True),
    ("Heartbeats are written every 10 seconds", "Heartbeats are written every minute", True),
    ("A lease is valid for 2 hours", "A lease is valid for 30 minutes", True),
    ("The lock times out after 5 seconds", "The lock times out after 1 minute", True),
    ("We store chat history indefinitely", "We delete chat history after 30 days", True),
    ("Old worktrees are deleted after 3 days", "Old worktrees are kept for at least 7 days", True),
    ("The agent must never write to the network", "The agent must write to the disk before the network is up", False),
    ("The importer must never write to the network", "The exporter must write to the network", False),
    ("The agent must never write secrets to the network", "The agent must write to the network", False),
    ("The service must not log passwords", "The service must log requests", False),
    ("The CLI must not prompt in CI", "The CLI must prompt for a name", False),
    ("The loop must not retry automatically", "The loop must retry failed uploads", False),
    ("The worker must not push to main without review", "The worker must push to main after review", False),
    ("The tool must not write to the network", "The tool must write to the network log", False),
    ("The runner must not only report errors", "The runner must report errors", False),
    ("The agent must not delete all beads", "The agent must delete closed beads", False),
    ("The server must not fail", "The server must fail fast", False),
    ("Workers must not edit the tracker directly", "Workers must edit the tracker through ddx", False),
    ("Access tokens expire after 15 minutes", "Refresh tokens expire after 30 days", False),
    ("Uploads are deleted after 30 days", "Audit logs are kept forever", False),
    ("Logs are kept for at least 30 days", "Logs are deleted after 90 days", False),
    ("Logs are kept for 7 days in staging", "Logs are kept for 30 days in production", False),
    ("Backups are kept for 7 days", "Backups are taken every 7 hours", False),
    ("Uploads must never be deleted without confirmation", "Uploads are deleted after 30 days", False),
    ("The connect timeout is 5 seconds", "The read timeout is 30 seconds", False),
    ("Retries wait at least 1 second", "Retries wait at most 60 seconds", False),
    ("The watcher polls the tracker every 5 seconds", "The watcher polls the journal every 2 minutes", False),
    ("Sessions of guests expire after 1 hour", "Sessions of admins expire after 8 hours", False),
    ("A run is stopped after 10 minutes without output", "A run is stopped after 4 hours", False),
    ("Closed beads are archived after 90 days", "Closed beads are kept forever", False),
    ("The cache must be refreshed within 5 minutes", "The cache must be refreshed within 10 minutes", False),
    ("Deleted accounts are kept for 30 days", "Accounts are kept forever", False),
    ("The first paint must take less than 1 second", "A key must take less than 50 ms", False),
    ("The daemon must not keep state in memory", "The daemon must keep state in the tracker", False),
    ("Reviewers must not edit files under review", "Reviewers must edit files that they own", False),
    ("The console must not open a browser window", "The console must open a file in the editor", False),
    ("Plans may not skip a stage", "Plans may skip a stage that is empty, with a reason", False),
    ("Test data is deleted after 1 day", "Data is kept forever", False),
    ("The sandbox must never reach the internet", "The host must reach the internet", False),
    ("Reports shall never be sent by mail", "Reports shall be sent by webhook", False),
    ("No plugin may write the settings file", "The settings screen must read the settings file", False),
    ("The hook must never block a commit", "The hook must block a push", False),
    ("Clients cannot change the priority of a closed bead", "Clients can change the priority of a bead", False),
    ("The run must not start without a budget", "The run must start without a prompt", False),
    ("Tests must not sleep", "Tests must clean up", False),
    ("The index must not grow without bound", "The index must grow with the repository", False),
    ("Transcripts are kept for 14 days", "Bundles are kept for six months", False),
    ("Crash dumps are removed after one week", "Crash dumps of customers are never removed", False),
    ("Snapshots are taken every 48 hours", "Snapshots expire after 30 days", False),
    ("Search results must arrive within 200 ms", "Search results must arrive within 1 second", False),
    ("Logs are kept for 30 days", "Logs are rotated after 1 day", False),
    ("Backups are stored encrypted", "Backups are stored for 30 days", False),
    ("A stale claim is released after 2 hours", "A stale claim is shown after 90 seconds", False),
    ("Idle sessions expire after 15 minutes", "Sessions expire after 24 hours", False),
    ("The reader must never modify the input", "The writer must modify the output", False),
    ("Agents must not commit secrets", "Agents must commit their work", False),
    ("The console must not need a mouse", "The console must need no network", False),
    ("Beads must not be reopened by workers", "Beads must be reopened by a person", False),
    ("Proposals may not be merged before review", "Proposals may be merged after review", False),
    ("The process must exit within 5 seconds", "The process must exit with code 0", False),
]
"""Sentences that nobody tuned the older rules on: what must never and must be done, and for how long things last."""


@pytest.mark.parametrize(("one", "other", "cannot"), ORDERS_AND_LENGTHS)
def test_orders_and_lengths_contradict_only_about_the_same(one: str, other: str, cannot: bool) -> None:
    assert contradict(one, other) is cannot
    assert contradict(other, one) is cannot


@pytest.mark.parametrize("name", ["ddx", "fizeau"])
def test_real_documents_raise_no_false_alarm_about_orders_and_lengths(shared: Path, tmp_path: Path, name: str) -> None:
    with tarfile.open(shared / "data" / "ddx" / "docs" / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / ".git").mkdir()
    found = find_conflicts(read_documents(find_project(tmp_path)))
    assert [each.text for each in found if each.kind == "physics-level"] == []


def test_a_higher_document_decides_so_that_it_is_no_physics() -> None:
    high = Statement("docs/prd.md", 1, "It must use Redis for sessions")
    low = Statement("docs/SD-1.md", 5, "It must not use Redis for sessions")
    finding = classify(low, high)
    assert finding is not None
    assert (finding.kind, finding.documents) == ("resolvable", ("docs/prd.md", "docs/SD-1.md"))


def test_different_ways_to_one_goal_are_resolvable() -> None:
    finding = classify(Statement("a", 5, "Use Postgres for storage"), Statement("b", 5, "Use SQLite for storage"))
    assert finding is not None
    assert finding.kind == "resolvable"


@pytest.mark.parametrize(
    ("identity", "path", "tier"),
    [
        ("helix.prd", "docs/01/prd.md", 1),
        ("FEAT-002", "x.md", 2),
        ("", "docs/product-vision.md", 0),
        ("ADR-001", "x.md", 4),
        ("notes", "docs/notes.md", 10),
    ],
)
def test_authority_follows_the_kind_of_document(identity: str, path: str, tier: int) -> None:
    assert tier_of(identity, path) == tier


def conflicts_in(root: Path) -> tuple[DocumentFinding, ...]:
    return find_conflicts(read_documents(find_project(root)))


def test_only_structured_sections_are_read_and_gaps_are_found(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "SD-001-a.md").write_text(
        "---\nddx:\n  id: SD-001\n---\n# A\n- must not use Kafka for events\n\n"
        "## Constraints\n- must use Redis for sessions\n\nSee [[FEAT-009]] and [[SD-002]].\n"
    )
    (docs / "SD-002-b.md").write_text(
        "# B\n## Requirements\n1. must not use Redis for sessions\n2. must use Kafka for events\n"
    )
    found = conflicts_in(tmp_path)
    assert [each.kind for each in found] == ["physics-level", "gap"]
    assert "FEAT-009" in found[1].text


def test_a_contradiction_in_prose_is_found_like_one_in_lists(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "prd.md").write_text(
        "# PRD\n## Requirements\nThe store is small. The service must use Redis\nfor sessions.\n\n"
        "```\nThe service must not use Postgres for sessions.\n```\n\n"
        "Later we learnt more: speed counts. The service must not use Redis for sessions.\n"
    )
    (found,) = conflicts_in(tmp_path)
    assert found.kind == "physics-level"
    assert "must not use Redis" in found.text


def test_a_repository_without_documents_has_none(tmp_path: Path) -> None:
    assert conflicts_in(tmp_path) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Write `[[ID-9]]` there, or ``[[ID-9]] `x` ``, or `two\nlines [[ID-9]]`.",
        "```toml\n[[tool.uv.index]]\n```",
        "- item\n  ~~~~\n  [[skills.config]]\n  ```\n  [[skills.more]]\n  ~~~~",
        "| syntax | meaning |\n|---|---|\n| [[UnknownID]] | a link |",
        "<!-- [[Later]] -->",
        "---\nlinks: [[Front]]\n---\n",
        "as in [[FEAT-XXX]] or [[US-NNN]] or [[ID]]",
        "Write\n\n    [[ID-9]]\n    [[ID-8]]\n\n\t[[ID-7]]\n",
    ],
)
def test_what_shows_how_a_link_is_written_is_none(text: str) -> None:
    assert list(references(Path("docs/a.md"), text)) == []


def test_links_in_prose_are_references_and_templates_have_none() -> None:
    text = "See [[FEAT-009]] and [[FEAT-009]].\n\n```\n[[no]]\n```\n> as [[ADR-1]] says\n"
    text += "and\n    so [[ADR-2]]\n\n- item\n\n    further [[ADR-3]]\n\n    again [[ADR-4]]\n"
    assert list(references(Path("docs/a.md"), text)) == ["FEAT-009", "ADR-1", "ADR-2", "ADR-3", "ADR-4"]
    assert not list(references(Path("docs/templates/a.md"), text))
    assert not list(references(Path("docs/a-template.md"), text))


def test_a_gap_in_a_copy_for_the_website_is_told_once(tmp_path: Path) -> None:
    for folder in ("docs/website/content", "docs/helix"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "prd.md").write_text("See [[FEAT-404]].\n")
    (finding,) = conflicts_in(tmp_path)
    assert finding.text == "docs/helix/prd.md refers to FEAT-404, which does not exist"


@pytest.mark.parametrize("name", ["ddx", "fizeau"])
def test_no_gap_is_told_of_examples_in_real_documents(shared: Path, tmp_path: Path, name: str) -> None:
    with tarfile.open(shared / "data" / "ddx" / "docs" / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    documents = read_documents(find_project(tmp_path))
    gaps = [each.text for each in find_conflicts(documents) if each.kind == "gap"]
    missing = {issue.id for issue in documents.graph.issues if issue.kind == "missing_dep"}
    assert len(gaps) == len(missing)
    assert all("an id that no document declares" in gap for gap in gaps)


def test_a_missing_dependency_names_what_a_search_finds(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("---\nddx:\n  id: A\n  depends_on: [CONTRACT-001]\n---\n[[CONTRACT-001]]\n")
    (docs / "CONTRACT-001-boundary.md").write_text("# Boundary\n")
    (gap,) = conflicts_in(tmp_path)
    assert gap.text == (
        "docs/a.md depends on CONTRACT-001, an id that no document declares; "
        "a search finds docs/CONTRACT-001-boundary.md by its file name"
    )


def test_what_is_superseded_demands_nothing(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, status, word in (("A", "active", "must"), ("B", "superseded", "must not")):
        (docs / f"{name}.md").write_text(
            f"---\nddx:\n  id: SD-{name}\n  status: {status}\n---\n## Constraints\n- {word} use Redis for sessions\n"
        )
    assert conflicts_in(tmp_path) == ()
    (docs / "B.md").write_text((docs / "B.md").read_text().replace("superseded", "active"))
    assert [each.kind for each in conflicts_in(tmp_path)] == ["physics-level"]
