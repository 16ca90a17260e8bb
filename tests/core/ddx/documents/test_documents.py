"""Documents: what their files say beside what ddx answered, and what stands on it."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.client import Ddx
from helix_tui.core.ddx.documents import builder
from helix_tui.core.ddx.documents.builder import read_graph
from helix_tui.core.ddx.documents.frontmatter import read_frontmatter
from helix_tui.core.ddx.documents.source import Documents, GoverningDocuments, read_documents
from helix_tui.core.ground.files import read_bytes
from helix_tui.core.ground.project import Project, find_project

GIVEN = Path(__file__).resolve().parents[5] / "shared" / "data" / "ddx" / "docs"


@pytest.fixture(scope="module", params=["ddx", "fizeau"])
def tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A real tree of documents, and what releases of ddx say of it."""
    if not GIVEN.is_dir():
        pytest.skip("the recorded document trees are not here")
    root = tmp_path_factory.mktemp(request.param)
    with tarfile.open(GIVEN / f"{request.param}.tar.xz") as archive:
        archive.extractall(root, filter="data")
    lines = (GIVEN / f"{request.param}.jsonl").read_text(encoding="utf-8").splitlines()
    return root, [json.loads(line) for line in lines]


def test_ids_titles_and_links_are_those_that_ddx_reads(tree: tuple[Path, list[dict[str, Any]]]) -> None:
    root, recorded = tree
    graph = read_graph(root)
    compared = 0
    for answer in recorded:
        verb, *words = answer["argv"][2:]
        if verb == "graph" and "--json" in words and "head" in answer["releases"]:
            assert graph.graph_json() == json.loads(answer["stdout"].replace("$P", str(root)))
            compared += 1
    assert compared


@pytest.mark.parametrize(
    "block",
    ["title: a: b", "a: *gone", "a: " + "[" * 50_000, "x: \x00", "ddx: !!python/object/apply:os.system [true]"],
)
def test_what_is_no_yaml_is_an_issue_and_no_document(tmp_path: Path, block: str) -> None:
    path = tmp_path / "docs" / "a.md"
    path.parent.mkdir()
    path.write_text(f"---\n{block}\n---\n# A\n")
    graph = read_graph(tmp_path)
    assert [(issue.kind, issue.path) for issue in graph.issues] == [("parse_error", "docs/a.md")]
    assert not graph.documents


def test_values_of_another_type_are_left_out() -> None:
    block = b"ddx: {id: 7, status: [draft], depends_on: {R}, execution: 5, supersedes: [A, {}, 3]}\nmetric: [x]"
    frontmatter = read_frontmatter(block)
    assert (frontmatter.id, frontmatter.status, frontmatter.depends_on, frontmatter.execution) == ("7", "", (), None)
    assert (frontmatter.supersedes, frontmatter.metric) == (("A",), None)


def test_aliases_of_aliases_cost_nothing() -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert read_frontmatter("\n".join([*lines, "ddx: {id: A, depends_on: *a11}"]).encode()).id == "A"


def write(root: Path, name: str, front: str, text: str = "") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nddx:\n{front}\n---\n{text}", encoding="utf-8")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A repository with three documents."""
    root = tmp_path / "p"
    write(root, "docs/prd.md", "  id: PRD", "# Product requirements\n")
    write(root, "docs/FEAT-001-login.md", "  id: FEAT-001\n  depends_on: [PRD]", "# Login by mail\nSee [[SD-009]].\n")
    write(root, "docs/SD-001.md", "  id: SD-001\n  depends_on: [FEAT-001]", "# Sessions\n")
    write(root, ".hidden/x.md", "  id: HIDDEN")
    write(root, "worktrees/y.md", "  id: COPY")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "one")):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=root, check=True)
    return find_project(root)


STALE = {"active_actionable": [{"id": "FEAT-001", "path": "docs/FEAT-001-login.md",
                                "reasons": ["dependency changed: PRD"]}]}  # fmt: skip


def asking(project: Project, tmp_path: Path) -> Documents:
    """The documents where a ddx says that a feature was reviewed against another text."""
    own = read_graph(project.root)
    answers = {"graph": own.graph_json(), "audit": own.audit_json(), "stale": STALE}
    told = {verb: json.dumps(answer) for verb, answer in answers.items()}
    return read_documents(project, Ddx(a_ddx(tmp_path, **told), project.root))


def test_where_there_is_a_ddx_it_answers(project: Project, tmp_path: Path) -> None:
    asked = asking(project, tmp_path)
    assert (asked.source, asked.note, [each.id for each in asked.stale]) == ("ddx", "", ["FEAT-001"])
    assert asked.all == read_graph(project.root).documents
    answers = {"graph": json.dumps([{"id": "ONLY", "path": "docs/only.md"}]), "audit": "[]", "stale": "[]"}
    assert list(read_documents(project, Ddx(a_ddx(tmp_path, **answers), project.root)).all) == ["ONLY"]


def test_a_question_announces_the_project_to_no_server(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DDX_SERVER_URL", "http://127.0.0.1:8")
    path = tmp_path / "ddx"
    path.write_text(f"#!/bin/sh\necho $DDX_SERVER_URL >> {tmp_path}/servers\necho '[]'\n")
    path.chmod(0o755)
    assert read_documents(project, Ddx(path, project.root)).source == "ddx"
    assert set((tmp_path / "servers").read_text().split()) == {"http://127.0.0.1:9"}


def test_without_a_ddx_nothing_is_claimed_of_reviews(project: Project) -> None:
    documents = read_documents(project)
    assert documents.stale == ()
    assert "only ddx knows" in documents.note


def test_what_is_hidden_or_a_copy_is_no_document(project: Project) -> None:
    assert list(read_documents(project).all) == ["FEAT-001", "PRD", "SD-001"]


def test_a_changed_document_names_its_dependents_and_the_beads_under_them(project: Project, tmp_path: Path) -> None:
    assert read_documents(project).changes(project, {}) == ()
    path = project.root / "docs/prd.md"
    path.write_text(path.read_text() + "More.\n")
    before = "2020-01-01T00:00:00Z"
    beads = {
        "b-1": Bead(id="b-1", spec_id="SD-001", updated_at=before),
        "b-2": Bead(id="b-2", spec_id="SD-001", updated_at=before, status="closed"),
        "b-3": Bead(id="b-3", spec_id="docs/FEAT-001-login.md#part", updated_at=before),
        "b-4": Bead(id="b-4", spec_id="OTHER-1", updated_at=before),
    }
    found = {change.document.id: change for change in asking(project, tmp_path).changes(project, beads)}
    change = found["PRD"]
    assert (change.when, change.uncommitted) == (None, True)
    assert (change.dependents, change.reviewed) == (("FEAT-001", "SD-001"), ("FEAT-001",))
    assert change.beads == ("b-3", "b-1")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "commit", "-qam", "two"], cwd=project.root, check=True)
    late = {name: Bead(id=name, spec_id="SD-001", updated_at="2100-01-01T00:00:00Z") for name in beads}
    (change,) = asking(project, tmp_path).changes(project, late)
    assert (change.document.id, change.reviewed, change.beads) == ("PRD", ("FEAT-001",), ()), (
        "the review alone is older"
    )
    assert (change.when, change.uncommitted) == (None, False)


def test_a_bead_written_after_the_change_is_not_named(project: Project) -> None:
    path = project.root / "docs/SD-001.md"
    path.write_text(path.read_text() + "More.\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "commit", "-qam", "two"], cwd=project.root, check=True)
    old = Bead(id="b-1", spec_id="SD-001", updated_at="2020-01-01T00:00:00Z")
    new = Bead(id="b-2", spec_id="SD-001", updated_at="2100-01-01T00:00:00Z")
    (change,) = (
        each
        for each in read_documents(project).changes(project, {"b-1": old, "b-2": new})
        if each.document.id == "SD-001"
    )
    assert change.beads == ("b-1",)


def test_changes_are_told_without_git_and_leave_its_index_alone(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project.root / "docs/prd.md"
    path.write_text(path.read_text() + "More.\n")
    os.utime(project.root / "docs/SD-001.md", (1, 1))  # git would note that it looked at it
    beads = {"b-1": Bead(id="b-1", spec_id="SD-001", updated_at="2020-01-01T00:00:00Z")}
    documents = read_documents(project)
    index = (project.root / ".git" / "index").read_bytes()
    told = {change.document.id: change.uncommitted for change in documents.changes(project, beads)}
    assert (told["PRD"], told["SD-001"]) == (True, False)
    assert (project.root / ".git" / "index").read_bytes() == index
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert documents.changes(project, beads) == ()


def test_what_no_document_declares_is_searched_and_said(project: Project) -> None:
    documents = read_documents(project)
    for name, expected, how in (
        ("FEAT-001", "FEAT-001", "id"),
        ("feat_001", "FEAT-001", "id"),
        ("docs/FEAT-001-login.md", "FEAT-001", "path"),
        ("FEAT-001-login", "FEAT-001", "name"),
        ("Login by mail", "FEAT-001", "title"),
    ):
        match = documents.find(name)
        assert match is not None
        assert (match.document.id, match.how) == (expected, how), name
    assert documents.find("login") is None
    assert [(match.document.id, match.how) for match in documents.search("mail")] == [("FEAT-001", "title")]
    (match,) = documents.search("SD-009")
    assert (match.document.id, match.how) == ("FEAT-001", "link")
    assert match.words == "by a link in its text"


def a_ddx(tmp_path: Path, **answers: str) -> Path:
    """A program in place of ddx that gives prepared answers to `doc VERB`."""
    path = tmp_path / "ddx"
    cases = "\n".join(f"  {verb}) cat <<'END'\n{text}\nEND\n  ;;" for verb, text in answers.items())
    path.write_text(f'#!/bin/sh\ncase "$2" in\n{cases}\n  *) echo "unknown command" >&2; exit 1 ;;\nesac\n')
    path.chmod(0o755)
    return path


def test_a_ddx_without_the_verb_is_stood_in_for_and_that_is_said(project: Project, tmp_path: Path) -> None:
    documents: Documents = read_documents(project, Ddx(a_ddx(tmp_path), project.root))
    assert documents.source == "files"
    assert "unknown command" in documents.note
    assert len(documents.all) == 3


def test_a_gate_and_its_metric_are_read_and_compared(project: Project) -> None:
    gate = "  id: GATE\n  depends_on: [SD-001]\n  execution:\n    kind: command\n    required: true\n"
    gate += "    command: [make, bench]\n    comparison: lower-is-better\n    thresholds: {ratchet: 250, unit: ms}\n"
    write(project.root, "docs/gate.md", gate + "    metric: {metric_id: MET-1}")
    met = "  id: MET-1\nmetric:\n  unit: ms\n  direction: lower-is-better\n  budget: 200"
    write(project.root, "docs/met.md", met)
    documents = read_documents(project)
    execution, metric = documents.all["GATE"].execution, documents.all["MET-1"].metric
    assert execution is not None
    assert metric is not None
    assert (execution.command, execution.comparison, execution.ratchet) == (("make", "bench"), "lower-is-better", 250)
    assert (metric.direction, metric.budget) == ("lower-is-better", 200)
    assert "- runs: make bench, required to land, ratchet at most 250 ms, measures MET-1" in documents.brief("GATE", ())
    assert "- metric: ms, lower-is-better, budget 200" in documents.brief("MET-1", ())


def test_documents_that_did_not_change_are_not_read_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [project.root / "docs" / name for name in ("prd.md", "FEAT-001-login.md", "SD-001.md")]
    for path in files:
        os.utime(path, (1_700_000_000, 1_700_000_000))
    read: list[str] = []

    def counted(path: str) -> bytes | None:
        read.append(path)
        return read_bytes(path)

    monkeypatch.setattr(builder, "read_bytes", counted)
    documents = GoverningDocuments(project, max_age_s=0.0)
    document = documents.get()
    assert sorted(read) == sorted(map(str, files))
    assert documents.get() is document
    assert len(read) == len(files), "the stamps are the same"
    assert documents.lacks("SD-002")
    files[0].write_text(files[0].read_text() + "More.\n")
    assert documents.get() is not document
    again = len(read)
    assert documents.get() is not None
    assert len(read) > again, "what was written this moment may be written again within one tick of the clock"
    for path in files:
        os.utime(path, (1_700_000_001, 1_700_000_001))
    document = documents.get()
    write(project.root, "docs/SD-002.md", "  id: SD-002")
    assert documents.get().all.keys() - document.all.keys() == {"SD-002"}
    assert not documents.lacks("SD-002")
