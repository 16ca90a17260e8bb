"""Trees of a repository: the schema's fields, what is checked, the walk around what was found, the certificate."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.ask.answer.model import ModelReply
from helix_tui.core.ask.index.trees import check_tree
from helix_tui.core.ask.records import field_lines
from helix_tui.core.ask.retrieval.tree_walk import Policy
from helix_tui.core.ask.sessions.document import acceptance
from tests.cli.conftest import Cli, cli
from tests.core.ask.sessions.solar import document, write

__all__ = ["cli"]

PAGE = Path(__file__).resolve().parents[3] / "docs" / "knowledge" / "dag-node-schema.md"
FILES = {
    "docs/leases.md": "# Leases\n\nA lease holds a bead.\n\n## Expiry\n\nExpiry of a lease comes a fixed time after "
    "its last heartbeat.\n\n### Renewal\n\nA heartbeat renews it.\n\n### Grace\n\nNone.\n\n## Release\n\nBy hand.\n",
    "src/lease.py": "def expires_at(last):\n    return last + 90\n",
}


def template() -> dict[str, Any]:
    match = re.search(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert match is not None
    tree = json.loads(match[1])
    assert isinstance(tree, dict)
    return tree


def checked(tree: object, files: dict[str, str] | None = None) -> list[tuple[str, str, bool]]:
    there = {path: text.encode() for path, text in (FILES if files is None else files).items()}
    return [(each.node, each.text, each.hint) for each in check_tree(json.dumps(tree).encode(), there.get)]


def test_the_template_for_users_keeps_its_own_schema() -> None:
    assert [found for found in checked(template()) if not found[2]] == []
    assert [node for node, _, _ in checked(template())] == ["leases"], "what is recommended is hinted at"


BROKEN: list[tuple[Callable[[dict[str, Any]], object], str, str]] = [
    (lambda tree: tree.update(rootId="x"), "", "rootId 'x' names no node"),
    (lambda tree: tree["nodes"][1].pop("id"), "", "node 2 has no id: it is skipped"),
    (lambda tree: tree["nodes"][1].update(id="leases"), "leases", "its id appears twice: the first one is used"),
    (lambda tree: tree["nodes"][1].pop("summary"), "lease-expiry", "no summary"),
    (lambda tree: tree["nodes"][1].update(tags="a"), "lease-expiry", "tags must be a list"),
    (lambda tree: tree["nodes"][1].update(dependencies=["x"]), "lease-expiry", "dependencies: 'x' names no node"),
    (lambda tree: tree["nodes"][1]["links"][0].update(to="x"), "lease-expiry", "link parent: 'x' names no node"),
    (lambda tree: tree["nodes"][0].update(links=[{"rel": "parent", "to": "lease-expiry"}]), "leases",
     "its parents form a cycle"),
    (lambda tree: tree["nodes"][1]["evidence"][0].update(type="hearsay"), "lease-expiry",
     "evidence 1: type 'hearsay' is none of doc, code, test, telemetry"),
    (lambda tree: tree["nodes"][1]["evidence"][0].update(path="docs/gone.md"), "lease-expiry",
     "evidence 1: there is no docs/gone.md"),
    (lambda tree: tree["nodes"][1]["evidence"][1].update(symbol="gone"), "lease-expiry",
     "evidence 2: src/lease.py holds no symbol “gone”"),
    (lambda tree: tree["nodes"][1].update(evidence=[{"type": "telemetry"}]), "lease-expiry",
     "evidence 1: telemetry without field"),
    (lambda tree: tree["nodes"][1].update(dependencies=5), "lease-expiry", "dependencies must be a list"),
    (lambda tree: tree["nodes"][1].update(dependencies=True), "lease-expiry", "dependencies must be a list"),
    (lambda tree: tree["nodes"][1].update(dependencies=[["x"]]), "lease-expiry", "dependencies: ['x'] names no node"),
    (lambda tree: tree["nodes"][1].update(children=[{}]), "lease-expiry", "children: {} names no node"),
    (lambda tree: tree["nodes"][1]["links"][0].update(to=["x"]), "lease-expiry", "link parent: ['x'] names no node"),
    (lambda tree: tree["nodes"][1]["links"][0].update(rel=["x"]), "lease-expiry", "a link without rel or to"),
    (lambda tree: tree["nodes"][1]["evidence"][0].update(type=["doc"]), "lease-expiry",
     "evidence 1: type ['doc'] is none of doc, code, test, telemetry"),
    (lambda tree: tree.update(rootId=["x"]), "", "rootId ['x'] names no node"),
    (lambda tree: tree["nodes"][1].update(deterministic="yes"), "lease-expiry", "deterministic must be true or false"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "node", "words"), BROKEN, ids=[words for _, _, words in BROKEN])
def test_each_way_to_break_a_tree_is_named(spoil: Callable[[dict[str, Any]], object], node: str, words: str) -> None:
    tree = template()
    spoil(tree)
    assert (node, words, False) in checked(tree)


UNKNOWN: list[tuple[Callable[[dict[str, Any]], object], str, str]] = [
    (lambda tree: tree.update(root_id="leases"), "", "root_id (did you mean rootId?)"),
    (lambda tree: tree["nodes"][1].update(determinstic=True), "lease-expiry",
     "determinstic (did you mean deterministic?)"),
    (lambda tree: tree["nodes"][1].update(owner="a"), "lease-expiry", "owner"),
    (lambda tree: tree["nodes"][1]["links"][0].update(target="leases"), "lease-expiry", "link: target"),
    (lambda tree: tree["nodes"][1]["evidence"][0].update(contentHash="x"), "lease-expiry",
     "evidence 1: contentHash (did you mean content_hash?)"),
    (lambda tree: tree["nodes"][1]["inputs"][0].update(units="s"), "lease-expiry",
     "inputs: units (did you mean unit?)"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "node", "words"), UNKNOWN, ids=[words for _, _, words in UNKNOWN])
def test_a_field_that_is_not_read_is_hinted_at_with_the_one_that_may_be_meant(
    spoil: Callable[[dict[str, Any]], object], node: str, words: str
) -> None:
    tree = template()
    assert not any("not read" in text for _, text, _ in checked(tree))
    spoil(tree)
    where, colon, field = words.rpartition(": ")
    assert (node, f"{where}{colon}not in the schema, not read: {field}", True) in checked(tree)


def test_of_many_unknown_fields_the_first_are_named() -> None:
    tree = template()
    tree["nodes"][1].update({f"x{number}{chr(27)}": 1 for number in range(9)})
    (said,) = [text for _, text, _ in checked(tree) if "not read" in text]
    assert said.endswith("x5 and 3 more")


def test_stale_evidence_is_a_hint_and_a_fresh_one_is_none() -> None:
    tree = template()
    proof = tree["nodes"][1]["evidence"][1]
    proof["content_hash"] = "sha256:" + hashlib.sha256(FILES["src/lease.py"].encode()).hexdigest()
    assert not any("stale" in text for _, text, _ in checked(tree))
    proof["content_hash"] = "sha256:" + "0" * 64
    assert any("stale, src/lease.py has changed" in text and hint for _, text, hint in checked(tree))


def test_the_command_checks_every_tree_and_fails_where_one_is_broken(cli: Cli, tmp_path: Path) -> None:
    root = write(tmp_path, {**FILES, "docs/lease-tree.json": json.dumps(template())})
    ran = cli("ask", "--check-trees", "-C", root)
    assert (ran.code, "docs/lease-tree.json: 0 problems" in ran.out) == (0, True)
    (root / "docs" / "leases.md").unlink()
    ran = cli("ask", "--check-trees", "--json", "-C", root)
    assert (ran.code, ran.document["broken"]) == (1, 1)
    assert "there is no docs/leases.md" in ran.out


def test_what_makes_a_node_reproducible_is_kept_and_shown(tmp_path: Path) -> None:
    root = write(tmp_path, {**FILES, "docs/lease-tree.json": json.dumps(template())})
    found = document(root, "When is the expiry of a lease?")
    (node,) = [node for node in found["tree_walk"] if node["id"] == "lease-expiry"]
    assert node["bound"]
    assert node["fields"]["tolerance"] == {"abs": 1}
    lines = field_lines(node["fields"])
    assert "inputs: last_heartbeat [s], from src/lease.py" in lines
    assert "deterministic: true" in lines
    assert "environment: runtime python, runtime_version 3.11, lockfile uv.lock" in lines


def test_a_full_path_shows_what_is_around_without_a_tree_too(tmp_path: Path) -> None:
    root = write(tmp_path, FILES)
    question = "When is the expiry of a lease?"
    walks = {
        depth: [node["title"] for node in document(root, question, depth=depth)["tree_walk"]]
        for depth in ("anchors_only", "root_to_anchor", "full_path")
    }
    assert set(walks["anchors_only"]) < set(walks["root_to_anchor"]) < set(walks["full_path"])
    assert {"Renewal", "Grace"} <= set(walks["full_path"])
    for walk in walks.values():
        assert len(walk) == len(set(walk)), "a section that bears evidence is not also told as one around another"


@pytest.mark.long
def test_spans_files_and_spans_of_a_file_have_a_budget_each(tmp_path: Path) -> None:
    files = {
        f"docs/lock{file}.md": "\n".join(f"## Lock {n}\n\nLock {n} of {file} is taken by a writer.\n" for n in range(6))
        for file in range(6)
    }
    root, question = write(tmp_path, files), "How is the lock taken by a writer?"

    def kept(policy: Policy) -> list[str]:
        return [span["file"] for span in document(root, question, policy=policy)["evidence"]]

    assert len(kept(Policy())) > 4
    assert len(kept(Policy(max_spans=3))) == 3
    assert len(kept(Policy(max_items=2))) == 2
    alone = kept(Policy(max_spans_per_file=1))
    assert len(alone) == len(set(alone)) > 1
    assert max(map(kept(Policy()).count, alone)) == 2


def test_an_answer_that_stands_in_for_a_model_has_the_walk_and_the_sources(tmp_path: Path) -> None:
    root = write(tmp_path, FILES)
    denied = ModelReply("There is no evidence in the repository.", "", "", "")
    found = document(root, "When is the expiry of a lease?", model=lambda _: denied)
    assert found["tool_results_fallback_applied"]
    walk, sources = found["answer"].find("\n\nTree walk:\n- "), found["answer"].find("\n\nSources:\n")
    assert 0 < walk < sources


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run for which every check of the certificate holds."""
    found = document(write(tmp_path_factory.mktemp("good"), FILES), "When is the expiry of a lease?")
    assert all(acceptance(found).values()), acceptance(found)
    assert json.loads(json.dumps(found)) == found
    return found


SPOILED: dict[str, Callable[[dict[str, Any]], object]] = {
    "evidence is not denied": lambda run: run.update(answer="There is no evidence in the repository for this."),
    "a matching file is cited": lambda run: run.update(citations=[{"file": "docs/unrelated.md"}]),
    "the tree walk is in the envelope": lambda run: run.update(tree_walk=[]),
    "ambiguity is resolved or asked": lambda run: run.update(ambiguity_scores=[{}, {}], ambiguity_selected=""),
    "documents lead to code": lambda run: run.update(symbols_resolved=["x"], code_alignment_applied=False),
    "one model call at most": lambda run: run.update(model_calls=2),
    "item hashes are stable": lambda run: run["evidence"][0].update(text="other words"),
    "the grounded tier is earned": lambda run: run.update(tier_selected="Grounded", grounded_claim_ratio=0.1),
    "coverage never falls": lambda run: run.update(controller_steps=[{"slotCoverage": 1.0}, {"slotCoverage": 0.5}]),
}


def test_every_check_is_tried(good: dict[str, Any]) -> None:
    assert set(SPOILED) == set(acceptance(good))


@pytest.mark.parametrize("check", SPOILED)
def test_each_check_of_the_certificate_can_fail(good: dict[str, Any], check: str) -> None:
    run = copy.deepcopy(good)
    SPOILED[check](run)
    assert [name for name, holds in acceptance(run).items() if not holds] == [check]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: run["tree_walk"][-1].update(span="docs/elsewhere.md:1-2"),
        lambda run: run["items"].pop(),
        lambda run: run["citations"].clear(),
    ],
    ids=["a node stands in no kept span", "an item is gone", "nothing is cited"],
)
def test_a_certificate_is_no_formality(good: dict[str, Any], spoil: Callable[[dict[str, Any]], object]) -> None:
    run = copy.deepcopy(good)
    spoil(run)
    assert not all(acceptance(run).values())
