"""The document graph: our own reader against what ddx answered, and what stands on it."""

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
from helix_tui.core.ddx.dialect import APRIL, AUGUST, Dialect
from helix_tui.core.ddx.documents import builder
from helix_tui.core.ddx.documents.builder import read_graph
from helix_tui.core.ddx.documents.frontmatter import read_fields, read_node, split
from helix_tui.core.ddx.documents.graph import DocumentGraph, DocumentsUnreadable, stale_json
from helix_tui.core.ddx.documents.hashing import content_hash
from helix_tui.core.ddx.documents.source import Documents, GoverningDocuments, read_documents
from helix_tui.core.ground.files import read_bytes
from helix_tui.core.ground.project import Project, find_project

GIVEN = Path(__file__).resolve().parents[5] / "shared" / "data" / "ddx" / "docs"


@pytest.fixture(scope="module", params=["ddx", "fizeau"])
def tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A real tree of documents, and what four releases of ddx say of it."""
    if not GIVEN.is_dir():
        pytest.skip("the recorded document trees are not here")
    root = tmp_path_factory.mktemp(request.param)
    with tarfile.open(GIVEN / f"{request.param}.tar.xz") as archive:
        archive.extractall(root, filter="data")
    lines = (GIVEN / f"{request.param}.jsonl").read_text(encoding="utf-8").splitlines()
    return root, [json.loads(line) for line in lines]


@pytest.mark.parametrize(("dialect", "releases"), [(APRIL, {"april"}), (AUGUST, {"may", "july", "head"})])
def test_our_reader_answers_what_four_releases_answered(
    tree: tuple[Path, list[dict[str, Any]]], dialect: Dialect, releases: set[str]
) -> None:
    root, recorded = tree
    graph = read_graph(root, root / ".ddx", rule=dialect.documents)
    compared = 0
    for answer in recorded:
        verb, *words = answer["argv"][2:]
        if not answer["stdout"] or releases.isdisjoint(answer["releases"]):
            continue
        said = answer["stdout"].replace("$P", str(root))
        if "--json" in words:
            assert json.loads(said) == _ours(graph, verb, words, answer["releases"]), answer["argv"]
            compared += 1
        elif verb in ("deps", "dependents") and answer["rc"] == 0:
            document = graph.document(words[0])
            ids = document.depends_on if verb == "deps" else document.dependents
            lines = [] if said.startswith("No ") else said.splitlines()
            assert [line.partition("  ")[0] for line in lines] == list(ids)
            compared += 1
    assert compared > 50


def _ours(graph: DocumentGraph, verb: str, words: list[str], releases: list[str]) -> Any:
    if verb == "graph":
        return graph.graph_json()
    if verb == "audit":
        return graph.audit_json()
    if verb == "stale":
        found = graph.stale()
        return [each.as_json() for each in found] if "april" in releases else stale_json(found)
    return graph.show_json(words[0])


HASHED = json.loads((Path(__file__).resolve().parents[3] / "data" / "documents" / "hashed.json").read_text())
"""Documents, and the hash that ``ddx doc stamp`` of August wrote into each."""


@pytest.mark.parametrize(("text", "expected"), HASHED)
def test_a_content_hash_is_the_one_that_ddx_stamps(text: str, expected: str) -> None:
    parts = split(text.encode())
    assert parts is not None
    assert content_hash(parts[0], read_node(parts[0]), parts[1]) == expected
    assert content_hash(parts[0], read_node(parts[0]), parts[1] + b"x") != expected


def test_a_review_does_not_change_the_hash(tmp_path: Path) -> None:
    plain = "---\nddx:\n  id: A\n---\n# A\n"
    stamped = "---\nddx:\n  id: A\n  review:\n    self_hash: x\n    deps: {}\n---\n# A\n"
    hashes = set()
    for text in (plain, stamped):
        parts = split(text.encode())
        assert parts is not None
        hashes.add(content_hash(parts[0], read_node(parts[0]), parts[1]))
    assert len(hashes) == 1


BROKEN = [
    ("title: a: b", "yaml: mapping values are not allowed in this context"),
    ("x: 1\ntitle: a: b", "yaml: line 2: mapping values are not allowed in this context"),
    ("ddx: true", "yaml: unmarshal errors:\n  line 1: cannot unmarshal !!bool `true` into docgraph.DocFrontmatter"),
    ("ddx:\n  id: A\n  depends_on: FEAT-001-xy",
     "yaml: unmarshal errors:\n  line 3: cannot unmarshal !!str `FEAT-00...` into []string"),
    ("%YAML 1.2", "yaml: found incompatible YAML document"),
    ("# x\n%YAML 2.0\nddx", "yaml: line 1: found incompatible YAML document"),
    ("%YAML 1.1\n# x\nddx: {id: A}", "yaml: line 3: mapping values are not allowed in this context"),
    ("a: *gone", "yaml: unknown anchor 'gone' referenced"),
    ("a: b\na: c", 'yaml: unmarshal errors:\n  line 2: mapping key "a" already defined at line 1'),
    ("? [a]\n: b\nddx: {id: A}", "yaml: unmarshal errors:\n  line 1: cannot unmarshal !!seq into string"),
    ("ddx:\n  <<: x\n  id: A", "yaml: map merge requires map or sequence of maps as the value"),
    ("ddx: {id: A, parking_lot: .inf, depends_on: !!set {R}}",
     "yaml: unmarshal errors:\n  line 1: cannot unmarshal !!float `.inf` into bool\n"
     "  line 1: cannot unmarshal !!set `` into []string"),
    ("ddx: {id: A, parking_lot: !x , execution: {required: 1, cwd: [x]}}",
     "yaml: unmarshal errors:\n  line 1: cannot unmarshal !x `` into bool\n"
     "  line 1: cannot unmarshal !!int `1` into bool\n  line 1: cannot unmarshal !!seq into string"),
]  # fmt: skip


@pytest.mark.parametrize(("block", "words"), BROKEN)
def test_a_broken_document_is_an_issue_in_the_words_of_ddx(tmp_path: Path, block: str, words: str) -> None:
    path = tmp_path / "docs" / "a.md"
    path.parent.mkdir()
    path.write_text(f"---\n{block}\n---\n# A\n")
    (issue,) = read_graph(tmp_path, tmp_path / ".ddx").issues
    assert issue.as_json() == {
        "kind": "parse_error",
        "path": "docs/a.md",
        "message": f"{path}: parse frontmatter: {words}",
    }


def test_aliases_of_aliases_cost_nothing() -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    node = read_node("\n".join(lines).encode())
    assert read_fields(node).id == ""
    lines = ["a0: &a0 {id: DEEP}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 30)]
    node = read_node("\n".join([*lines, "ddx: *a29"]).encode())
    assert read_fields(node).id == "DEEP"


@pytest.mark.parametrize(
    ("block", "fields"),
    [
        ("base: &b {depends_on: [R], status: draft}\nddx:\n  id: A\n  status: x\n  <<: *b", ("A", "x", ("R",))),
        ("a: &a {status: one}\nb: &b {status: two, depends_on: [R]}\nddx: {id: A, <<: [*a, *b]}", ("A", "one", ("R",))),
        ("deps: &d [R]\nid: &i A\nddx:\n  id: *i\n  depends_on: *d", ("A", "", ("R",))),
        ('ddx:\n  id: A\n  "<<": {status: no}', ("A", "", ())),
        ("ddx:\n  id: !!binary Uk9PVA==\n  status: !!str ~", ("ROOT", "~", ())),
        ("\u00a0\nddx: {id: A, status: y\u00a0}\n\u00a0", ("A", "y\u00a0", ())),
    ],
)
def test_anchors_merges_and_tags_are_read_as_ddx_reads_them(block: str, fields: tuple[Any, ...]) -> None:
    found = read_fields(read_node(block.encode()))
    assert (found.id, found.status, found.depends_on) == fields


def write(root: Path, name: str, front: str, text: str = "") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nddx:\n{front}\n---\n{text}", encoding="utf-8")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A repository whose PRD changed after a feature was reviewed against it."""
    root = tmp_path / "p"
    prd = write(root, "docs/prd.md", "  id: PRD", "# Product requirements\n")
    parts = split(prd.read_bytes())
    assert parts is not None
    old = content_hash(parts[0], read_node(parts[0]), parts[1])
    write(root, "docs/FEAT-001-login.md",
          f"  id: FEAT-001\n  depends_on: [PRD]\n  review:\n    self_hash: x\n    deps:\n      PRD: {old}",
          "# Login by mail\nSee [[SD-009]].\n")  # fmt: skip
    write(root, "docs/SD-001.md", "  id: SD-001\n  depends_on: [FEAT-001]", "# Sessions\n")
    write(root, ".hidden/x.md", "  id: HIDDEN")
    write(root, "worktrees/y.md", "  id: COPY")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "one")):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=root, check=True)
    return find_project(root)


def test_what_is_hidden_or_a_copy_is_no_document(project: Project) -> None:
    assert list(read_documents(project).all) == ["FEAT-001", "PRD", "SD-001"]


def test_a_changed_document_names_its_dependents_and_the_beads_under_them(project: Project) -> None:
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
    found = {change.document.id: change for change in read_documents(project).changes(project, beads)}
    change = found["PRD"]
    assert (change.when, change.uncommitted) == (None, True)
    assert (change.dependents, change.reviewed) == (("FEAT-001", "SD-001"), ("FEAT-001",))
    assert change.beads == ("b-3", "b-1")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "commit", "-qam", "two"], cwd=project.root, check=True)
    late = {name: Bead(id=name, spec_id="SD-001", updated_at="2100-01-01T00:00:00Z") for name in beads}
    (change,) = read_documents(project).changes(project, late)
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
    (change,) = documents.changes(project, beads)
    assert (change.document.id, change.reviewed, change.beads) == ("PRD", ("FEAT-001",), ())


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


def test_where_there_is_a_ddx_it_answers_and_differences_are_kept(project: Project, tmp_path: Path) -> None:
    own = read_graph(project.root, project.ddx_dir)
    answers = {
        "graph": json.dumps(own.graph_json()),
        "audit": json.dumps(own.audit_json()),
        "stale": json.dumps(stale_json(own.stale())),
    }
    asked = read_documents(project, Ddx(a_ddx(tmp_path, **answers), project.root))
    assert (asked.source, asked.note, asked.differences) == ("ddx", "", ())
    assert asked.all == own.documents
    answers["graph"] = json.dumps([{"id": "ONLY", "path": "docs/only.md"}])
    asked = read_documents(project, Ddx(a_ddx(tmp_path, **answers), project.root))
    assert list(asked.all) == ["ONLY"]
    assert "ONLY is a document for ddx alone" in asked.differences


def test_hidden_folders_are_read_where_the_ddx_at_hand_reads_them(project: Project, tmp_path: Path) -> None:
    for folder in (".kept", "docs/.deep", ".agents", ".claude", ".ddx", ".git", "worktrees"):
        path = project.root / folder / "more.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nddx:\n  id: IN-{folder}\n---\n")
    (project.root / "docs" / ".more.md").write_text("---\nddx:\n  id: FILE\n---\n")
    usual = set(read_documents(project, None, AUGUST).all)
    assert usual == set(read_documents(project).all)
    assert set(read_documents(project, None, APRIL).all) - usual == {
        "HIDDEN",
        "IN-.kept",
        "IN-docs/.deep",
        "IN-.agents",
    }
    graphs = project.ddx_dir / "graphs"
    graphs.mkdir()
    (graphs / "g.yaml").write_text("roots: [.kept, worktrees]\n")
    assert list(read_documents(project, None, APRIL).all) == ["IN-.kept"]
    assert not read_documents(project, None, AUGUST).all
    answers = {"graph": json.dumps([{"id": "IN-.kept", "path": ".kept/more.md"}]), "audit": "[]", "stale": "[]"}
    ddx = Ddx(a_ddx(tmp_path, **answers), project.root)
    assert read_documents(project, ddx, APRIL).differences == ()
    assert read_documents(project, ddx).differences == (
        "IN-.kept is a document for ddx alone: it is in a hidden folder",
    )


def test_a_status_and_a_gate_are_judged_as_the_ddx_at_hand_judges_them(project: Project) -> None:
    write(project.root, "docs/a.md", "  id: A\n  status: [draft]")
    write(project.root, "docs/b.md", "  id: B\n  status: draft\n  execution: {metric: {metric_id: MET-1}}")
    write(project.root, "docs/c.md", "  id: C\n  execution: {env: [a], artifact_ids: x, active: 5}\n  prompt: {}")
    old, new = (read_documents(project, None, dialect) for dialect in (APRIL, AUGUST))
    kinds = {
        name: {issue.path: issue.kind for issue in found.graph.issues} for name, found in (("old", old), ("new", new))
    }
    assert kinds["old"] == {"docs/c.md": "parse_error"}
    assert kinds["new"] == kinds["old"] | {"docs/a.md": "parse_error", "docs/b.md": "missing_metric_artifact"}
    assert (old.all["A"].status, old.all["B"].status, "A" in new.all) == ("", "draft", False)
    (said,) = (issue.message for issue in old.graph.issues)
    expected = ("string", "bool", "map[string]string", "[]string")
    assert all(f"into {kind}" in said for kind in expected)


def test_a_ddx_without_the_verb_is_stood_in_for_and_that_is_said(project: Project, tmp_path: Path) -> None:
    asked: Documents = read_documents(project, Ddx(a_ddx(tmp_path), project.root))
    assert asked.source == "files"
    assert "unknown command" in asked.note
    assert len(asked.all) == 3


def test_a_broken_graph_setting_is_refused_by_name(project: Project) -> None:
    path = project.ddx_dir / "graphs" / "g.yaml"
    path.parent.mkdir(parents=True)
    for text, words in (("roots: [docs\n", r"g\.yaml"), ("roots: docs\n", r"!!str `docs` into \[\]string")):
        path.write_text(text)
        with pytest.raises(DocumentsUnreadable, match=words):
            read_documents(project)


def test_graph_settings_narrow_and_add(project: Project) -> None:
    write(project.root, "extra/x.md", "  id: X")
    path = project.ddx_dir / "graphs" / "g.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(
        "roots: [docs]\nid_to_path: {X: extra/x.md}\ncascade: {PRD: [X], NO: [PRD], '': [X], E: []}\n"
        "required_roots: [NONE]\n"
    )
    os.symlink("..", project.root / "docs" / "folder.md")
    graph = read_graph(project.root, project.ddx_dir)
    assert graph.documents["X"].depends_on == ("PRD",)
    assert [(issue.kind, issue.id) for issue in graph.issues] == [
        ("cascade_unknown", "NO"),
        ("parse_error", ""),
        ("required_root_missing", "NONE"),
    ]
    assert graph.issues[1].message.endswith("docs/folder.md: is a directory")


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
    assert documents.graph.warnings == (
        'metric artifact "MET-1" budget 200 conflicts with gate ratchet 250 on "GATE"; gate ratchet is authoritative',
    )


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
    known = documents.get()
    assert sorted(read) == sorted(map(str, files))
    assert documents.get() is known
    assert len(read) == len(files), "the stamps are the same"
    assert documents.lacks("SD-002")
    files[0].write_text(files[0].read_text() + "More.\n")
    assert documents.get() is not known
    again = len(read)
    assert documents.get() is not None
    assert len(read) > again, "what was written this moment may be written again within one tick of the clock"
    for path in files:
        os.utime(path, (1_700_000_001, 1_700_000_001))
    known = documents.get()
    write(project.root, "docs/SD-002.md", "  id: SD-002")
    assert documents.get().all.keys() - known.all.keys() == {"SD-002"}
    assert not documents.lacks("SD-002")
