"""``helix-tui doc``, and what ``check`` and the planning commands say of documents."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.helix.conftest import BUILDABLE, helix, stage
from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import StageFactory

__all__ = ["helix", "stage"]

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b")


def write(root: Path, name: str, front: str, text: str = "") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nddx:\n{front}\n---\n{text}", encoding="utf-8")
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    write(root, "docs/prd.md", "  id: PRD", "# Product\n")
    write(root, "docs/FEAT-001-login.md", "  id: FEAT-001\n  depends_on: [PRD, GONE]", "# Login\n")
    write(root, "docs/SD-001.md", "  id: SD-001\n  depends_on: [FEAT-001]", "# Sessions [[x]]\n")
    (root / ".ddx").mkdir()
    subprocess.run([*GIT, "init", "-q"], cwd=root, check=True)
    return root


def test_each_verb_answers_in_the_form_of_ddx_and_says_who_answered(cli: Cli, tree: Path) -> None:
    def answer(*words: str) -> Any:
        document = cli("doc", *words, "--own", "--json", "-C", tree).document
        assert (document["source"], document["verb"]) == ("files", words[0])
        return document["answer"]

    assert [entry["id"] for entry in answer("graph")] == ["FEAT-001", "PRD", "SD-001"]
    assert answer("show", "PRD") == {
        "id": "PRD", "path": "docs/prd.md", "title": "Product", "dependents": ["FEAT-001"]
    }  # fmt: skip
    assert answer("deps", "FEAT-001") == ["GONE", "PRD"]
    assert answer("dependents", "PRD") == ["FEAT-001"]
    assert answer("dependents", "PRD", "--all") == ["FEAT-001", "SD-001"]
    assert answer("stale")["summary"]["total"] == 0, "only ddx knows"
    assert [entry["id"] for entry in answer("audit")] == ["GONE"]
    assert [entry["how"] for entry in answer("search", "sessions")] == ["title"]


def test_for_people_a_search_and_our_own_reader_are_said(cli: Cli, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDX_BIN", str(tree / "none"))
    ran = cli("doc", "deps", "FEAT-001-login", "-C", tree)
    assert "GONE  (no document)" in ran.out
    assert "no document declares the id FEAT-001-login; found by its file name" in ran.err
    assert "ddx was not asked" in ran.err
    old = tree / "ddx-of-march"
    old.write_text('#!/bin/sh\necho \'unknown command "doc" for "ddx"\' >&2\nexit 1\n')
    old.chmod(0o755)
    ran = cli("doc", "deps", "FEAT-001-login", "-C", tree, "--ddx", old)
    assert "ddx does not answer" in ran.err
    assert "was not asked" not in ran.err
    assert cli("doc", "audit", "-C", tree).code == 1
    ran = cli("doc", "show", "NOPE", "-C", tree)
    assert (ran.code, "doc search" in ran.err) == (1, True)


def test_check_names_a_changed_document_its_dependents_and_beads(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", **BUILDABLE | {"spec-id": "SD-001", "updated_at": "2020-01-01T00:00:00Z"})])
    write(world.root, "docs/SD-001.md", "  id: SD-001", "# Sessions\n")
    write(world.root, "docs/TD-001.md", "  id: TD-001\n  depends_on: [SD-001]")
    subprocess.run([*GIT, "init", "-q"], cwd=world.root, check=True)
    subprocess.run([*GIT, "add", "docs"], cwd=world.root, check=True)
    subprocess.run([*GIT, "commit", "-qm", "docs"], cwd=world.root, check=True)
    document = helix(world, "check", "--json").document
    (note,) = (each for each in document["reasons"] if each["code"] == "document_changed")
    assert note["refs"] == ["SD-001", "a-1"]
    assert "TD-001 depends on it" in note["detail"]
    assert "open beads written before: a-1" in note["detail"]
    assert document["next_action"] == "BUILD"
    changed = helix(world, "doc", "changed", "--own", "--json").document["answer"]
    assert [(each["id"], each["dependents"], each["beads"]) for each in changed] == [("SD-001", ["TD-001"], ["a-1"])]
    world.rewrite("a-1", updated_at="2100-01-01T00:00:00Z")
    assert "document_changed" not in helix(world, "check", "--json").out


def test_a_planning_prompt_says_what_its_document_rests_on(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", **BUILDABLE | {"spec-id": "SD-001"})])
    write(world.root, "docs/prd.md", "  id: PRD")
    write(world.root, "docs/SD-001.md", "  id: SD-001\n  depends_on: [PRD]")
    for words in (("design", "PRD"), ("align", "PRD"), ("evolve", "more", "--artifact", "PRD")):
        ran = helix(world, *words, "--dry-run", "--json")
        prompt = json.loads(ran.out)["prompt"]
        assert "Document PRD, docs/prd.md" in prompt, words
        assert "documents that depend on it, directly or through others: SD-001" in prompt
        assert "open beads under these: a-1" in prompt
