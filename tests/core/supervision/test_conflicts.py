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
    ],
)
def test_only_demands_that_cannot_both_hold_contradict(one: str, other: str, cannot: bool) -> None:
    assert contradict(one, other) is cannot
    assert contradict(other, one) is cannot


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
    ],
)
def test_what_shows_how_a_link_is_written_is_none(text: str) -> None:
    assert list(references(Path("docs/a.md"), text)) == []


def test_links_in_prose_are_references_and_templates_have_none() -> None:
    text = "See [[FEAT-009]] and [[FEAT-009]].\n\n```\n[[no]]\n```\n> as [[ADR-1]] says\n"
    assert list(references(Path("docs/a.md"), text)) == ["FEAT-009", "ADR-1"]
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
    missing = [issue for issue in documents.graph.issues if issue.kind == "missing_dep"]
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
