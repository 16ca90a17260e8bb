"""What we say of documents beside what each real ddx says, on real trees and on one that is made to be difficult."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.ddx.client import Ddx
from helix_tui.core.ddx.documents.graph import stale_json
from helix_tui.core.ddx.documents.source import read_documents
from helix_tui.core.ground.project import find_project
from tests.real.stranger import Release

BLOCKS = (
    "ddx:\n  id: [a]",
    "ddx:\n  id: A02\n  depends_on: FEAT-001",
    "ddx:\n  id: A03\n  depends_on:\n    - x: y\n    - [q]",
    "ddx: true",
    "ddx:",
    "ddx:\n  id: A07\n  parking_lot: maybe",
    "ddx:\n  id: A08\n  parking_lot: yes\n  depends_on: [A01]",
    "ddx:\n  id: A09\n  id: A10",
    "ddx:\n  id: A11\n   bad: indent",
    'title: "unclosed\nddx:\n  id: A12',
    "title: a: b",
    "\ttab: x",
    "just text",
    "- a\n- b",
    'ddx:\n  id: 123\n  depends_on: [true, 1.5, ~, "", A08]',
    "ddx:\n  id: A17\n  review: none",
    "ddx: {id: A24, depends_on: [A24]}",
    "a: *unknown",
    "a: [1, 2\nb: 3",
    "dun:\n  id: A30\nddx:\n  status: x",
    'ddx:\n  id: A31\n  depends_on:\n    - A30\n    -   "A08 "\n  status: Superseded',
    "a: b\na: c",
    "a: 'x' y",
    'ddx:\n  id: "quoted \\"x\\" é"',
    "ddx:\n  - id",
    "ddx:\n  id: A43\n  depends_on:\n  - a\n  -\n  status: published",
    "key: - a",
    "ddx:\n  id: A08",
    "base: &b {depends_on: [A08], parking_lot: yes}\nddx:\n  id: M1\n  <<: *b",
    "a: &a {depends_on: [A08]}\nb: &b {depends_on: [A30]}\nddx: {<<: [*a, *b], id: M2}",
    "ddx:\n  <<: x\n  id: M3",
    "? [a]\n: b\nddx: {id: M4}",
    "ddx: {id: M5, parking_lot: .inf, depends_on: !!set {R}}",
    "ddx: {id: M6, parking_lot: !x , execution: {required: 1, cwd: [x]}}",
    "ddx: {id: '  M7 ', depends_on: ['  A08  ']}",
    "ddx:\n  id: !!binary TTg=",
    "ddx:\n  id: S1\n  status: [draft, x]",
    "ddx: {id: S2, prompt: [x], execution: {env: [x], artifact_ids: x, active: 5}}",
    "ddx: {id: S3, execution: {metric: {metric_id: MET-9}}}",
    "ddx:\n  id: !!str ~\n  depends_on: [!!str null, ~]",
    "%YAML 1.2\nddx: {id: V1}",
    "# a\n\n# b\n%YAML 1.2 # c\nddx: {id: V2}",
    "%YAML 1.1\nddx: {id: V3}",
    "%YAML 1.10\nddx: {id: V4}",
    "%TAG ! x:\n%YAML 2.0\nddx: {id: V5}",
    "%YAML 1.2",
    "# a\n%YAML 1.2",
    "# a\n\n%YAML 1.1 # b",
    "%YAML 1.3\nddx",
    "%YAML 1.1\nddx",
)
"""Frontmatter as nobody should write it."""


def difficult(root: Path) -> None:
    """Broken documents, copies, cases and places."""
    for number, block in enumerate(BLOCKS):
        path = root / "docs" / f"e{number:02}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\n{block}\n---\n# T{number}\n\n[[A08]] [[a 30]] [[A_31]] [[nope]]\n")
    plain = "---\nddx:\n  id: {}\n  depends_on: [A08]\n---\n{}"
    for name, identity, text in (
        ("worktrees/w.md", "W1", "x"),
        (".kept/h.md", "HID", "[[A08]]"),
        ("docs/.deep/h.md", "HID2", "x"),
        (".agents/h.md", "HID3", "x"),
        (".claude/h.md", "HID4", "x"),
        ("docs/Up.MD", "UP", "  # spaced title \n"),
        ("node_modules/p/n.md", "NM", "```\n# in a fence\n```"),
        ("docs/references/n.md", "REF", ""),
        ("docs/alignment-reviews/n.md", "AR", ""),
        ("docs/hist.md", "HIST", "\n# T\n> **Historical** x\n\nfoo"),
        ("docs/crlf.md", "CRLF", "# t\r\n"),
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(plain.format(identity, text).encode())
    os.symlink("..", root / "docs" / "folder.md")


@pytest.mark.parametrize("tree", ["ddx", "fizeau", "difficult", "narrowed"])
def test_the_answers_are_ddxs(release: Release, tmp_path: Path, tree: str) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    given = Path(__file__).parents[3] / "shared" / "data" / "ddx" / "docs" / f"{tree}.tar.xz"
    if tree in ("difficult", "narrowed"):
        difficult(root)
    elif given.is_file():
        with tarfile.open(given) as archive:
            archive.extractall(root, filter="data")
    else:
        pytest.skip("the recorded document trees are not here")
    if tree == "narrowed":
        graphs = root / ".ddx" / "graphs"
        graphs.mkdir(parents=True)
        (graphs / "g.yml").write_text(
            "roots: [docs, docs/references]\nrequired_roots: [NOPE, A08]\n"
            "id_to_path: {NM: node_modules/p/n.md, Y: docs/no.md}\ncascade:\n  A08: [NM, NOPE]\n  NONE: [A08]\n"
            "  NO: [A08]\n  E: []\n"
        )
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    home = tmp_path / "home"
    home.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_DATA_HOME": str(home), "TMPDIR": str(home)}
    env |= {"DDX_SERVER_URL": "http://127.0.0.1:9"}
    ddx = Ddx(release.path, root, env)
    documents = read_documents(find_project(root), ddx)
    assert documents.source == "ddx"
    assert documents.graph.graph_json() == ddx.json("doc", "graph", "--json")
    assert documents.graph.audit_json() == json.loads(ddx.attempt("doc", "audit", "--json").stdout)
    stale: Any = ddx.json("doc", "stale", "--json")
    flat = [each.as_json() for each in documents.stale]
    assert (stale_json(documents.stale) if isinstance(stale, dict) else flat) == (stale or [])
    own = read_documents(find_project(root))
    assert (own.source, own.stale) == ("files", ())
