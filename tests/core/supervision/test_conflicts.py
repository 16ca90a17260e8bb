"""Conflicts that documents declare: resolvable, physics-level, gap."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from helix_tui.core.ddx.documents.graph import GraphDocument
from helix_tui.core.ddx.documents.source import Documents, read_documents
from helix_tui.core.ground.project import find_project
from helix_tui.core.supervision.signals.document_conflicts import find_conflicts, tier_of


def write_document(root: Path, name: str, *fields: str, text: str = "") -> None:
    """A document of the graph whose id is its file name."""
    (root / "docs").mkdir(exist_ok=True)
    head = "\n".join(f"  {field}" for field in (f"id: {name}", *fields))
    (root / "docs" / f"{name}.md").write_text(f"---\nddx:\n{head}\n---\n# {name}\n{text}")


def documents_of(root: Path) -> Documents:
    return read_documents(find_project(root))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("superseded_by: SD-2", "superseded_by: SD-1"),
        ("supersedes: [SD-2]", "supersedes: SD-1"),
        ("superseded_by: [SD-9, SD-2]", "superseded_by: SD-1"),
    ],
)
def test_two_documents_of_one_rank_that_supersede_each_other_are_physics_level(
    tmp_path: Path, first: str, second: str
) -> None:
    write_document(tmp_path, "SD-1", first)
    write_document(tmp_path, "SD-2", second)
    (finding,) = find_conflicts(documents_of(tmp_path), ["SD-1", "SD-2"])
    assert finding.kind == "physics-level"
    assert finding.text == "SD-1 (docs/SD-1.md) and SD-2 (docs/SD-2.md) each supersede the other"
    assert finding.statements == (("docs/SD-1.md", "SD-2"), ("docs/SD-2.md", "SD-1"))


def test_one_document_that_declares_both_is_the_only_one_quoted(tmp_path: Path) -> None:
    write_document(tmp_path, "SD-1", "supersedes: SD-2", "superseded_by: SD-2")
    write_document(tmp_path, "SD-2")
    (finding,) = find_conflicts(documents_of(tmp_path))
    assert (finding.kind, finding.statements) == ("physics-level", (("docs/SD-1.md", "SD-2"),))


def test_of_two_ranks_the_higher_document_decides(tmp_path: Path) -> None:
    write_document(tmp_path, "SD-1", "supersedes: PRD-1")
    write_document(tmp_path, "PRD-1", "supersedes: SD-1")
    (finding,) = find_conflicts(documents_of(tmp_path))
    assert (finding.kind, finding.documents) == ("resolvable", ("docs/PRD-1.md", "docs/SD-1.md"))
    assert finding.assumed == "PRD-1 holds"


@pytest.mark.parametrize(
    ("old", "new", "by", "assumed"),
    [
        ("superseded_by: SD-2", "status: draft", "superseded by SD-2 (docs/SD-2.md)", "SD-2 holds"),
        ("status: draft", "supersedes: SD-1", "superseded by SD-2 (docs/SD-2.md)", "SD-2 holds"),
        ("status: Superseded", "status: draft", "superseded", "SD-1 still holds"),
    ],
)
def test_a_superseded_document_that_open_beads_name_is_resolvable(
    tmp_path: Path, old: str, new: str, by: str, assumed: str
) -> None:
    write_document(tmp_path, "SD-1", old)
    write_document(tmp_path, "SD-2", new)
    documents = documents_of(tmp_path)
    assert find_conflicts(documents, ["SD-2"]) == ()
    (finding,) = find_conflicts(documents, ["docs/SD-1.md#goals"])
    assert finding.kind == "resolvable"
    assert finding.text == f"open beads name SD-1 (docs/SD-1.md), which is {by}"
    assert finding.assumed == assumed


@pytest.mark.parametrize("fields", [["superseded_by: SD-1"], ["superseded_by: {a: b}"], ["supersedes: [[SD-2], 7]"]])
def test_what_declares_no_other_document_is_no_conflict(tmp_path: Path, fields: list[str]) -> None:
    write_document(tmp_path, "SD-1", *fields)
    write_document(tmp_path, "SD-2")
    assert [conflict for conflict in find_conflicts(documents_of(tmp_path)) if conflict.kind != "gap"] == []


def test_the_text_of_documents_is_not_judged(tmp_path: Path) -> None:
    demands = "## Constraints\n- must use Redis for sessions\n- must not use Redis for sessions\n\nSee [[FEAT-9]].\n"
    write_document(tmp_path, "SD-1", text=demands)
    assert find_conflicts(documents_of(tmp_path), ["SD-1"]) == ()


def test_a_repository_without_documents_has_none(tmp_path: Path) -> None:
    assert find_conflicts(documents_of(tmp_path), ["SD-1"]) == ()


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
    assert tier_of(GraphDocument(identity, path)) == tier


def test_a_missing_document_is_one_gap_whoever_names_it(tmp_path: Path) -> None:
    write_document(tmp_path, "A", "depends_on: [FEAT-404]")
    write_document(tmp_path, "B", "depends_on: [FEAT-404]")
    conflicts = find_conflicts(documents_of(tmp_path), ["FEAT-404", "FEAT-405", "A"])
    assert [(each.kind, each.missing) for each in conflicts] == [("gap", "FEAT-404"), ("gap", "FEAT-405")]
    assert conflicts[1].text == "open beads name FEAT-405, which does not exist"


def test_a_missing_dependency_names_what_a_search_finds(tmp_path: Path) -> None:
    write_document(tmp_path, "A", "depends_on: [CONTRACT-001]")
    (tmp_path / "docs" / "CONTRACT-001-boundary.md").write_text("# Boundary\n")
    (gap,) = find_conflicts(documents_of(tmp_path))
    assert gap.text == (
        "docs/A.md depends on CONTRACT-001, an id that no document declares; "
        "a search finds docs/CONTRACT-001-boundary.md by its file name"
    )


@pytest.mark.parametrize("name", ["ddx", "fizeau"])
def test_real_documents_have_no_conflict_but_what_ddx_misses(shared: Path, tmp_path: Path, name: str) -> None:
    with tarfile.open(shared / "data" / "ddx" / "docs" / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    documents = documents_of(tmp_path)
    missing = {issue.id for issue in documents.graph.issues if issue.kind == "missing_dep"}
    assert {conflict.missing for conflict in find_conflicts(documents)} == missing


def test_beads_of_real_documents_that_are_superseded_are_told_of_the_replacement(shared: Path, tmp_path: Path) -> None:
    with tarfile.open(shared / "data" / "ddx" / "docs" / "ddx.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    conflicts = find_conflicts(documents_of(tmp_path), ["plan-2026-05-11-bead-backend-interfaces"])
    assert [(each.kind, each.assumed) for each in conflicts] == [("resolvable", "TD-027 holds")]
