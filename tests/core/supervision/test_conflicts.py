"""Conflicts between documents: resolvable, physics-level, gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from helix_tui.core.supervision.conflicts import Statement, classify, contradict, find_conflicts, tier_of


@pytest.mark.parametrize(
    ("one", "other", "cannot"),
    [
        ("The service must use Redis for sessions", "The service must not use Redis for sessions", True),
        ("Updates are delivered in real-time", "Processing is batch-only", True),
        ("Works offline-only", "It requires a network", True),
        ("Must log requests", "Must not log passwords", False),
        ("Use Postgres for storage", "Use SQLite for storage", False),
        ("Must be fast", "Must be small", False),
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
    finding = classify(
        Statement("a", 5, "Use Postgres for storage"), Statement("b", 5, "Use SQLite for storage")
    )
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
    found = find_conflicts(tmp_path)
    assert [each.kind for each in found] == ["physics-level", "gap"]
    assert "FEAT-009" in found[1].text


def test_a_repository_without_documents_has_none(tmp_path: Path) -> None:
    assert find_conflicts(tmp_path) == ()
